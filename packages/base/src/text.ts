/** Text for people, without the rest of this package: the page of `shardtool view` and every command print with it. */
export { countOf, escapeControls, formatCount, toMessage } from './escape-controls.js';
export { OPTION_GROUPS, type OptionGroup } from './options/entry.js';
export { parseSize } from './size.js';
