/** SHA-256 (FIPS 180-4) for browsers, whose own is asynchronous and absent from pages without https. */

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const ROUND = Uint32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)));
/** The same of the square roots of the first 8 primes. */
const START = Uint32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)));
const BLOCK = 64;
/** Bytes of the length that follows the message. */
const LENGTH = 8;

export interface WebHash {
  update(given: string | Uint8Array): WebHash;
  digest(encoding: 'hex'): string;
}

/** Like `createHash` of `node:crypto`, for `sha256` in hexadecimal. The message is kept until the end. */
export function createHash(algorithm: 'sha256'): WebHash {
  if (algorithm !== 'sha256') throw new Error(`There is no hash ${algorithm} here, only sha256.`);
  const pieces: Uint8Array[] = [];
  const hash: WebHash = {
    update(given) {
      pieces.push(typeof given === 'string' ? new TextEncoder().encode(given) : given.slice());
      return hash;
    },
    digest: () => Array.from(sha256(pieces), (word) => word.toString(16).padStart(8, '0')).join(''),
  };
  return hash;
}

function sha256(pieces: readonly Uint8Array[]): Uint32Array {
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  const padded = new Uint8Array(Math.ceil((bytes + 1 + LENGTH) / BLOCK) * BLOCK);
  let at = 0;
  for (const piece of pieces) {
    padded.set(piece, at);
    at += piece.length;
  }
  padded[bytes] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - LENGTH, BigInt(bytes) * 8n);
  const state = START.slice();
  const words = new Uint32Array(BLOCK);
  for (let block = 0; block < padded.length; block += BLOCK) mix(state, words, view, block);
  return state;
}

function mix(state: Uint32Array, words: Uint32Array, view: DataView, block: number): void {
  for (let i = 0; i < 16; i++) words[i] = view.getUint32(block + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [early, late] = [words[i - 15]!, words[i - 2]!];
    const small = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    const large = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
    words[i] = words[i - 16]! + small + words[i - 7]! + large;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const sum = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const first = (h + sum + ((e & f) ^ (~e & g)) + ROUND[i]! + words[i]!) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => {
    state[i] = state[i]! + value;
  });
}

function turned(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function fraction(value: number): number {
  return Math.floor((value - Math.floor(value)) * 2 ** 32);
}

function primes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}
