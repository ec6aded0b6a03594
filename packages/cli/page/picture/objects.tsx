/** Boxes, polygons and points, drawn over an image. */
import type { DrawnObject } from '../../src/view/protocol.js';
import { shown } from '../text.js';

interface ObjectsProps {
  /** Coordinates are pixels of the image. */
  readonly objects: readonly DrawnObject[];
  readonly width: number;
  readonly height: number;
  /** Maximum number of screen pixels per pixel of the image. */
  readonly factor: number;
}

export function Objects({ objects, width, height, factor }: ObjectsProps) {
  const letters = 12 / factor;
  return (
    <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${objects.length} objects`}>
      {objects.map(({ label, box, polygons, points }, i) => {
        const colour = `hsl(${(hueOf(label ?? '') * 137.508) % 360} 90% 55%)`;
        return (
          <g key={i} stroke={colour} fill="none">
            {box !== null && <rect x={box[0]} y={box[1]} width={box[2] - box[0]} height={box[3] - box[1]} />}
            {polygons.map((ring) => (
              <polygon key={ring.join()} points={ring.join(' ')} />
            ))}
            {points.map(([x, y]) => (
              <circle key={`${x} ${y}`} cx={x} cy={y} r={2 / factor} fill={colour} />
            ))}
            {label !== null && box !== null && (
              <text x={box[0] + letters / 4} y={box[1] + letters} font-size={letters}>
                {shown(label)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** Equal names get equal colours. */
function hueOf(name: string): number {
  let sum = 0;
  for (const character of name) sum = (sum * 31 + character.codePointAt(0)!) % 9973;
  return sum;
}
