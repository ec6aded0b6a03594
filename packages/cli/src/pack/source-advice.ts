import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Usual names for parts of a dataset, which are not classes. */
const SPLITS = new Set(['train', 'training', 'val', 'valid', 'validation', 'test', 'testing']);
const IMAGES = new Set(['images', 'image', 'imgs', 'jpegimages']);
const IMAGE_SIDECARS = new Set(['masks', 'mask', 'labels', 'annotations', 'segmentation', 'segmentationclass']);

/** Names of files with the labels of a folder's images; see `findMetadata` of the writer. */
const TABLES = ['metadata.csv', 'metadata.jsonl'];

/** Returns the class folders of a local source that have their own table of labels. */
export function tablesBelow(source: string, classes: readonly string[]): string[] {
  return classes.flatMap((name) =>
    TABLES.filter((table) => existsSync(join(source, name, table))).map((table) => `${name}/${table}`),
  );
}

/**
 * Returns lines of advice if the class folders of a packed folder are probably not classes; otherwise none. `source` is for the
 * messages. `labelsBy` is the option that sets the classes, if any; `labels` is the table that has them in a column. `tables` are
 * the tables in folders below, which were not read.
 */
export function adviceOnClasses(
  classes: readonly string[],
  samples: number,
  source: string,
  labelsBy: 'labels' | 'other' | null,
  tables: readonly string[] = [],
): string[] {
  if (samples === 0) return [];
  if (labelsBy === 'labels' && classes.length === 0) {
    return [
      '  no row of --labels has a class, so every label is -1 in training: the classes come from its column "class" (or ' +
        '"label", where the paths are called "file_name")',
    ];
  }
  if (labelsBy !== null) return [];
  if (classes.length === 0) {
    return [
      `  no image lies in a folder below ${source}, so none has a class: its label is -1 in training. Put each class ` +
        'into a folder of its own, or give --labels',
    ];
  }
  const names = classes.map((name) => name.toLowerCase());
  const splits = classes.filter((name) => SPLITS.has(name.toLowerCase()));
  if (splits.length === classes.length) {
    return [
      `  the classes are called ${splits.join(', ')}, as the parts of a dataset are: --splits makes a dataset of each, or ` +
        `pack one of them (${source}/${splits[0]})${tables.length === 0 ? '' : `; ${tables.join(' and ')} then ${tables.length === 1 ? 'says' : 'say'} the classes`}`,
    ];
  }
  if (names.some((name) => IMAGES.has(name)) && names.some((name) => IMAGE_SIDECARS.has(name))) {
    return [
      `  the classes are called ${classes.join(', ')}: what lies in them seems to belong together. Files beside an ` +
        'image become its fields: --pair masks=seg.png takes masks/1.png as the field seg.png of images/1.jpg, and --yolo ' +
        "data.yaml takes YOLO's label files",
    ];
  }
  const [table] = tables;
  if (table === undefined) return [];
  return [
    `  ${table} was not read: such a table counts for the folder that is packed (${source}/${table.split('/')[0]})`,
  ];
}

/** Patterns of a single name, whose matches can be determined here. */
const ONE_NAME = /^[^./\\{}[\]()!+@|][^/\\{}[\]()!+@|]*$/;

/**
 * Returns a line for each pattern of `exclude` that applies only directly below a local `source` and matches nothing there, if the
 * images are in folders below. The user probably meant these folders.
 */
export function adviceOnPatterns(exclude: readonly string[], source: string): string[] {
  const patterns = exclude.filter((pattern) => ONE_NAME.test(pattern));
  if (patterns.length === 0 || !existsSync(source)) return [];
  const names = readdirSync(source);
  return patterns
    .filter((pattern) => !names.some((name) => fits(name, pattern)))
    .map(
      (pattern) => `  --exclude '${pattern}' fits nothing right below ${source}: '**/${pattern}' looks in all folders`,
    );
}

/** Whether a name matches a pattern whose only special characters are * and ?. */
function fits(name: string, pattern: string): boolean {
  const source = pattern.replace(/[.^$]/g, '\\$&').replaceAll('?', '.').replace(/\*+/g, '.*');
  return new RegExp(`^${source}$`, 'su').test(name);
}
