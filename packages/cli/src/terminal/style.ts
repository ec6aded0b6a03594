/** Styles of text on a terminal, by their SGR numbers (ECMA-48): on and off. */
const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], cyan: [36, 39] } as const;

export type Style = keyof typeof STYLES;

/** Applies a style, or returns the text unchanged. */
export type Paint = (style: Style, text: string) => string;

/** Returns the styles for a stream. FORCE_COLOR and NO_COLOR decide, as in Node. Without them, only a terminal gets colours. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return isColoured(stream) ? paint : (_style, text) => text;
}

function paint(style: Style, text: string): string {
  const [on, off] = STYLES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

function isColoured(stream: NodeJS.WriteStream): boolean {
  const { FORCE_COLOR, NO_COLOR } = process.env;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  return stream.isTTY === true && stream.hasColors();
}
