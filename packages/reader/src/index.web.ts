/** The exports of the reader that the page of `view --static` uses. `web/index.ts` has those of `shardtool/web`. */
export { columnsText } from './annotations/columns-text.js';
export { checkAnnotations } from './annotations/options.js';
export { readAnnotations } from './annotations/read.js';
export { annotationSources, nameOfSource } from './annotations/sources.js';
export { imageOf } from './dataset/image-of.js';
export { selectableOf } from './selection/selectable.js';
export { compileWhere } from './selection/where.js';
