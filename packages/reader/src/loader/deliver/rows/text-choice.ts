import type { FieldValue } from '../../../dataset/fields/field-values.js';
import { FIRST_NUMBER, SampleRandom } from '../../../transform/random.js';

/** Identifies a sample and its occurrence. */
interface Sample {
  readonly source: number;
  readonly pass: number;
  readonly number: number;
  readonly occurrence: number;
}

/** Chooses one of several texts of a field with the random numbers of the sample. Each field uses one random number. */
export class TextChoice {
  readonly #randoms: readonly SampleRandom[];

  /** `seeds` are the seeds of the datasets. */
  constructor(seeds: readonly number[]) {
    this.#randoms = seeds.map((seed) => new SampleRandom(seed));
  }

  /** Chooses a text for each of the fields of a sample, in order. */
  of({ source, pass, number, occurrence }: Sample): (value: FieldValue) => FieldValue {
    const random = this.#randoms[source]!.start(pass, number, occurrence, FIRST_NUMBER.captionSampling);
    return (value) => {
      // A number is drawn for every field, so that no choice depends on the contents of another field.
      const drawn = random.next();
      const texts = textsOf(value);
      return texts === null ? value : texts[Math.floor(drawn * texts.length)]!;
    };
  }
}

/** Returns the texts to choose from: a JSON list of texts, or the non-empty lines. */
function textsOf(value: FieldValue): readonly string[] | null {
  if (Array.isArray(value)) return value.length > 0 && value.every((one) => typeof one === 'string') ? value : null;
  if (typeof value !== 'string') return null;
  const lines = value.split(/\r?\n/).filter((line) => line.trim() !== '');
  return lines.length > 0 ? lines : null;
}
