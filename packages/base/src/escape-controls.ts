/**
 * Characters that steer a terminal or end a line where they are meant to be part of a name: controls (ESC, BEL, TAB, newline,
 * and the C1 controls, of which terminals take U+009B for ESC [), marks of text direction, separators of lines, and halves
 * of characters, which are no text.
 */
const STEERING = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/**
 * The text with every character that steers a terminal written as JSON writes it (`\u001b`, `\n`), so that text in JSON stays
 * the same text. Characters of `kept` stay: what lays out lines and columns.
 */
export function escapeControls(text: string, kept = ''): string {
  return text.replace(STEERING, (character) => {
    if (kept.includes(character)) return character;
    return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** 1234567 as `1,234,567`. Without toLocaleString, which loads for 5 ms. */
export function formatCount(count: number): string {
  if (!Number.isInteger(count)) return count.toLocaleString('en-US');
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 shard`, `1,281 shards`. The plural ends in s unless it is given. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** Longer words of a sentence, or names in quotes, are cut in the middle. */
const LONGEST_NAME = 320;
const SHOWN_AT_AN_END = 100;

const LONG_NAME = new RegExp(`"[^"]{${LONGEST_NAME},}"|[^\\s"]{${LONGEST_NAME},}`, 'g');

/** A sentence for people: {@link escapeControls}, and with names of thousands of characters cut in the middle. */
export function toMessage(text: string): string {
  return escapeControls(text).replace(LONG_NAME, (name) => {
    const left = name.length - 2 * SHOWN_AT_AN_END;
    return `${name.slice(0, SHOWN_AT_AN_END)}... (${left} characters) ...${name.slice(-SHOWN_AT_AN_END)}`;
  });
}
