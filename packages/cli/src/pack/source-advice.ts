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
      '  no row of --labels has a class, so every label is -1 in training: put the classes into its column "class" (or ' +
        '"label", if the column of paths is called "file_name")',
    ];
  }
  if (labelsBy !== null) return [];
  if (classes.length === 0) {
    return [
      `  all images are directly in ${source}, so they have no class, and their label is -1 in training: put each class ` +
        'into its own folder, or set --labels',
    ];
  }
  const names = classes.map((name) => name.toLowerCase());
  const splits = classes.filter((name) => SPLITS.has(name.toLowerCase()));
  if (splits.length === classes.length) {
    return [
      `  the classes are called ${splits.join(', ')}, like the splits of a dataset: --splits makes a dataset of each, or ` +
        `pack one of them (${source}/${splits[0]})${tables.length === 0 ? '' : `, with the classes in ${tables.join(' and ')}`}`,
    ];
  }
  if (names.some((name) => IMAGES.has(name)) && names.some((name) => IMAGE_SIDECARS.has(name))) {
    return [
      `  the classes are called ${classes.join(', ')}, but their files seem to belong together: to make files fields of an ` +
        'image, use --pair masks=seg.png (masks/1.png becomes the field seg.png of images/1.jpg), or --yolo data.yaml for ' +
        "YOLO's label files",
    ];
  }
  const [table] = tables;
  if (table === undefined) return [];
  return [
    `  ${table} was not read, because only a table in the packed folder itself is used: pack ${source}/${table.split('/')[0]} to use it`,
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
      (pattern) =>
        `  --exclude '${pattern}' matches nothing directly below ${source}: to match in all folders, use '**/${pattern}'`,
    );
}

/** Whether a name matches a pattern whose only special characters are * and ?. */
function fits(name: string, pattern: string): boolean {
  const source = pattern.replace(/[.^$]/g, '\\$&').replaceAll('?', '.').replace(/\*+/g, '.*');
  return new RegExp(`^${source}$`, 'su').test(name);
}
