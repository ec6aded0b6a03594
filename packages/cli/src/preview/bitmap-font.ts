/** Letters for pictures, since a machine may have no fonts: 5 x 7 pixels, drawn for this. */
import type { Canvas } from './preview.js';

const FIRST = 32;
const ROWS = 7;
const COLUMNS = 5;
/** From one letter to the next. */
const ADVANCE = 6;
const INK = 230;
/** So many pixels a dot. */
const DOT = 2;

export const TEXT_HEIGHT = ROWS * DOT;

/** ASCII from the space to the tilde: seven digits in base 32 a letter, a row of pixels each, the left one highest. */
const LETTERS =
  '00000004444404aa00000avaaava4fke5u4pq248bjcik8lid4400000248884284222480level0044v4400000448000e0000000044122488g' +
  'ehjlphe4c4444eeh168gveh161he26aiv22vgu11he68guhhev124888ehhehheehhf12c04404400440448248g84200v0v008421248eh12404' +
  'ehnlngeehhvhhhuhhuhhuehggghesihhhisvgguggvvggugggehgnhhfhhhvhhhe44444e72222ichikokihggggggvhrllhhhhpljhhhehhhhhe' +
  'uhhugggehhhliduhhukihfgge11uv444444hhhhhhehhhhha4hhhllrhhha4ahhhha4444v1248gve88888eg884221e22222e4ah0000000000v' +
  '840000000e1fhfgguhhhu00ehghe11fhhhf00ehvge68s88880fhhf1egguhhhh40c444e20622icggikokic44444e00qllll00uhhhh00ehhhe' +
  '0uhhugg0fhhf1100mpggg00fge1u88s889600hhhhf00hhha400hhlla00ha4ah0hhhf1e00v248v34484434444444o44244o008l200';

/** Writes text with its upper left corner at (left, top), in small letters where it would be wider than `width`, cut to fit. */
export function drawText(canvas: Canvas, text: string, left: number, top: number, width: number): void {
  const dot = text.length * ADVANCE * DOT <= width ? DOT : 1;
  const most = Math.floor(width / (ADVANCE * dot));
  [...text].slice(0, most).forEach((letter, i) => {
    drawLetter(canvas, letter, left + i * ADVANCE * dot, top, dot);
  });
}

function drawLetter(canvas: Canvas, letter: string, left: number, top: number, dot: number): void {
  const place = letter.charCodeAt(0) - FIRST;
  const known = place >= 0 && place * ROWS < LETTERS.length ? place : '?'.charCodeAt(0) - FIRST;
  for (let y = 0; y < ROWS * dot; y++) {
    const bits = Number.parseInt(LETTERS[known * ROWS + Math.floor(y / dot)]!, 32);
    for (let x = 0; x < COLUMNS * dot; x++) {
      if (((bits >> (COLUMNS - 1 - Math.floor(x / dot))) & 1) === 0) continue;
      const at = ((top + y) * canvas.width + left + x) * 3;
      canvas.pixels.fill(INK, at, at + 3);
    }
  }
}
