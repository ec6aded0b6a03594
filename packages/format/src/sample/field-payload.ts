import { digitsOf } from '../msgpack/digits.js';
import { jsonText } from '../msgpack/json-text.js';

/**
 * Recovers the payload of a field as it was given to the writer from its stored bytes. If the position says `msgpack`,
 * the payload is the JSON text of the stored value (`7` for the integer 7); otherwise the stored bytes are the payload.
 * Throws a SyntaxError if the value has no JSON text.
 */
export function fieldPayload<Memory extends ArrayBufferLike>(
  stored: Uint8Array<Memory>,
  msgpack: boolean | undefined,
): Uint8Array<Memory | ArrayBuffer> {
  if (!msgpack) return stored;
  return digitsOf(stored) ?? Buffer.from(jsonText(stored));
}
