/** Shared parts of the pictures: the two sets of colours, text that cannot become markup, and the frame of an SVG. */

/** Colours of each picture, for light and dark pages. */
export const THEMES = {
  light: {
    text: '#1f2328',
    quiet: '#59636e',
    line: '#d1d9e0',
    box: '#f6f8fa',
    ours: '#0969da',
    theirs: '#8c959f',
    mark: '#bc4c00',
  },
  dark: {
    text: '#f0f6fc',
    quiet: '#9198a1',
    line: '#3d444d',
    box: '#151b23',
    ours: '#4493f8',
    theirs: '#656c76',
    mark: '#f0883e',
  },
};

const FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif";

export function picture({ width, height, title, body }) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title" font-family="${FONT}">`,
    `<title id="title">${escaped(title)}</title>`,
    ...body,
    '</svg>',
    '',
  ].join('\n');
}

/** A line of text whose baseline starts, is centred, or ends at (x, y). */
export function text(x, y, content, { fill, size = 13, anchor = 'start', weight = 400 }) {
  return `<text x="${x}" y="${y}" fill="${fill}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}">${escaped(content)}</text>`;
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
