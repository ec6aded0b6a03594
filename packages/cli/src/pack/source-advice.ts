/** Names that people give to the parts of a dataset, not to classes. */
const SPLITS = new Set(['train', 'training', 'val', 'valid', 'validation', 'test', 'testing']);
const IMAGES = new Set(['images', 'image', 'imgs', 'jpegimages']);
const BESIDE_IMAGES = new Set(['masks', 'mask', 'labels', 'annotations', 'segmentation', 'segmentationclass']);

/**
 * What a packed folder looks like, where its class folders are hardly classes: a line of advice, or none. `source` is for
 * the message; `hasLabels` where a table says the classes.
 */
export function adviceOnClasses(
  classes: readonly string[],
  samples: number,
  source: string,
  hasLabels: boolean,
): string[] {
  if (samples === 0 || hasLabels) return [];
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
        `pack one of them (${source}/${splits[0]})`,
    ];
  }
  if (names.some((name) => IMAGES.has(name)) && names.some((name) => BESIDE_IMAGES.has(name))) {
    return [
      `  the classes are called ${classes.join(', ')}: what lies in them seems to belong together. Files beside an ` +
        'image become its fields: --pair masks=seg.png takes masks/1.png as the field seg.png of images/1.jpg',
    ];
  }
  return [];
}
