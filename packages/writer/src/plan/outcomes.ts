/**
 * Why a file is in no sample. `counted` is the label of its count in a summary (null: its extension); `reason` is the
 * text in a list.
 */
interface PlannedOutcome {
  readonly counted: string | null;
  readonly reason: string;
  /**
   * True for files that are skipped because of what they are, and so are listed in skipped.jsonl. Others are packed or
   * in another list.
   */
  readonly isSkipped: boolean;
}

const skipped = (counted: string | null, reason: string): PlannedOutcome => ({ counted, reason, isSkipped: true });
const elsewhere = (reason: string): PlannedOutcome => ({ counted: '', reason, isSkipped: false });

const TABLE = {
  packed: elsewhere('it is packed'),
  noImage: skipped(null, 'it is not an image, and there is no image with the same stem next to it'),
  noExtension: skipped('without an extension', 'its name has no extension, so it cannot be a field of a sample'),
  noRow: skipped('without a row', 'the labels have no row for it'),
  ofUnpacked: skipped('next to images that are not packed', 'it belongs to an image that is not packed'),
  unpaired: skipped('without an image', 'there is no image with its stem'),
  otherExtension: skipped(
    'with another extension',
    'it is in a paired folder, but does not have the extension given for that folder',
  ),
  classFile: skipped(
    'with a class that is already known',
    'its image already has a class from its folder or the labels',
  ),
  labels: elsewhere('it is the labels file'),
  inDataset: elsewhere('it is already in the dataset'),
  duplicate: elsewhere('another image has the same bytes'),
  collides: elsewhere('it would have the same key as another file'),
} as const satisfies Readonly<Record<string, PlannedOutcome>>;

export type OutcomeName = keyof typeof TABLE;

const NAMES = Object.keys(TABLE) as OutcomeName[];

/** The number of each outcome in a table of files. */
export const OUTCOME = Object.fromEntries(NAMES.map((name, number) => [name, number])) as Readonly<
  Record<OutcomeName, number>
>;

/** The outcome with this number. */
export function outcomeOf(number: number): PlannedOutcome {
  return TABLE[NAMES[number]!];
}
