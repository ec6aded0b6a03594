/** Text for people, without the rest of this package. The page of `shardtool view` and all commands use it. */
export { countOf, escapeControls, formatCount, toMessage } from './escape-controls.js';
export { OPTION_GROUPS, type OptionGroup } from './options/entry.js';
export { parseSize } from './size.js';
