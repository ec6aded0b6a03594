/** Why a file is in no sample: `counted` is how a summary counts it, null for its ending; `reason` is what a list says. */
interface PlannedOutcome {
  readonly counted: string | null;
  readonly reason: string;
  /** Left out by what it is, and so in skipped.jsonl; others are packed, or stand in another list. */
  readonly isSkipped: boolean;
}

const skipped = (counted: string | null, reason: string): PlannedOutcome => ({ counted, reason, isSkipped: true });
const elsewhere = (reason: string): PlannedOutcome => ({ counted: '', reason, isSkipped: false });

const TABLE = {
  packed: elsewhere('it is packed'),
  noImage: skipped(null, 'it is no image, and there is no image with its stem beside it'),
  noExtension: skipped('without an ending', 'its name has no ending, so it is no field of a sample'),
  noRow: skipped('without a row', 'the labels have no row for it'),
  ofUnpacked: skipped('beside images that are not packed', 'it belongs to an image that is not packed'),
  unpaired: skipped('without an image', 'there is no image with its stem'),
  otherExtension: skipped(
    'with another ending',
    'it lies in a paired folder, and has another ending than was given for it',
  ),
  classFile: skipped('with a class that is known otherwise', 'its image has a class of its folder or of the labels'),
  labels: elsewhere('it is the table of labels'),
  inDataset: elsewhere('the dataset has it'),
  duplicate: elsewhere('another image has its bytes'),
  collides: elsewhere('it would have the key of another file'),
} as const satisfies Readonly<Record<string, PlannedOutcome>>;

export type OutcomeName = keyof typeof TABLE;

const NAMES = Object.keys(TABLE) as OutcomeName[];

/** The number that stands for a fate in a table of files. */
export const OUTCOME = Object.fromEntries(NAMES.map((name, number) => [name, number])) as Readonly<
  Record<OutcomeName, number>
>;

/** The fate of this number. */
export function outcomeOf(number: number): PlannedOutcome {
  return TABLE[NAMES[number]!];
}
