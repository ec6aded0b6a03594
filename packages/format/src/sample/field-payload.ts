import { digitsOf } from '../layouts/msgpack/digits.js';
import { jsonText } from '../layouts/msgpack/json-text.js';

/**
 * The payload of a field as it was given to the writer, from the bytes at its position. Where the position says
 * `msgpack`, that is the JSON text of the value that stands there (`7` for the integer 7); otherwise the bytes are the
 * payload. Throws a SyntaxError where the value has no JSON text.
 */
export function fieldPayload(stored: Uint8Array, msgpack: boolean | undefined): Uint8Array {
  if (!msgpack) return stored;
  return digitsOf(stored) ?? Buffer.from(jsonText(stored));
}
