/**
 * Characters that control a terminal or end a line although they are part of a name: control characters (ESC, BEL, TAB,
 * newline, and the C1 controls; terminals treat U+009B as ESC [), marks of text direction, line separators, and
 * unpaired surrogates.
 */
const STEERING = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/**
 * Escapes every character that controls a terminal as JSON does (`\u001b`, `\n`), so that JSON stays equivalent.
 * Characters in `kept`, such as line breaks for layout, are not escaped.
 */
export function escapeControls(text: string, kept = ''): string {
  return text.replace(STEERING, (character) => {
    if (kept.includes(character)) return character;
    return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Formats 1234567 as `1,234,567`. It avoids toLocaleString, which takes 5 ms to load. */
export function formatCount(count: number): string {
  if (!Number.isInteger(count)) return count.toLocaleString('en-US');
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 shard`, `1,281 shards`. The plural ends in s unless it is given. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** Words and quoted names longer than this are shortened in the middle of a message. */
const LONGEST_NAME = 320;
const SHOWN_AT_AN_END = 100;

const LONG_NAME = new RegExp(`"[^"]{${LONGEST_NAME},}"|[^\\s"]{${LONGEST_NAME},}`, 'g');

/**
 * Makes a message safe to print: {@link escapeControls}, and names of thousands of characters are shortened in the
 * middle.
 */
export function toMessage(text: string): string {
  return escapeControls(text).replace(LONG_NAME, (name) => {
    const left = name.length - 2 * SHOWN_AT_AN_END;
    return `${name.slice(0, SHOWN_AT_AN_END)}... (${left} characters) ...${name.slice(-SHOWN_AT_AN_END)}`;
  });
}
