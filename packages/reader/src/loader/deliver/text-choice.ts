import type { FieldValue } from '../../dataset/field-values.js';
import { FIRST_NUMBER, SampleRandom } from '../../transform/random.js';

/** Which sample it is, and when. */
interface Sample {
  readonly source: number;
  readonly pass: number;
  readonly number: number;
  readonly occurrence: number;
}

/** Takes one of several texts of a field, as the sample's random numbers say: each field in turn has one of them. */
export class TextChoice {
  readonly #randoms: readonly SampleRandom[];

  /** `seeds` are those of the datasets. */
  constructor(seeds: readonly number[]) {
    this.#randoms = seeds.map((seed) => new SampleRandom(seed));
  }

  /** Chooses for the fields of a sample, one after the other. */
  of({ source, pass, number, occurrence }: Sample): (value: FieldValue) => FieldValue {
    const random = this.#randoms[source]!.start(pass, number, occurrence, FIRST_NUMBER.captionSampling);
    return (value) => {
      // Drawn for every field, so that none depends on what another one holds.
      const drawn = random.next();
      const texts = textsOf(value);
      return texts === null ? value : texts[Math.floor(drawn * texts.length)]!;
    };
  }
}

/** The texts among which there is a choice: a JSON list of them, or lines, of which empty ones do not count. */
function textsOf(value: FieldValue): readonly string[] | null {
  if (Array.isArray(value)) return value.length > 0 && value.every((one) => typeof one === 'string') ? value : null;
  if (typeof value !== 'string') return null;
  const lines = value.split(/\r?\n/).filter((line) => line.trim() !== '');
  return lines.length > 0 ? lines : null;
}
