import { escapeControls } from '@shardtool/base/text';
import type { InspectFinding, InspectGroups, InspectReport } from '@shardtool/reader';
import { countOf, formatCount } from '../terminal/size.js';

/** Marks a report that shardtool wrote, so that no other file is replaced. */
export const REPORT_MARK = '<meta name="generator" content="shardtool inspect">';

/** The sample that a picture shows, and its dataset. */
export interface Shown {
  readonly from: 'dataset' | 'against';
  readonly index: number;
}

/** JPEG of a sample, or null if it cannot be decoded. */
export type PictureOf = (shown: Shown) => Uint8Array | null;

/** A sample with its key, and the text about it. */
interface Named extends Shown {
  readonly key: string;
  readonly class: string | null;
  readonly note: string;
}

/** All samples that the page of a report shows, in the order of the page. */
export function shownIn(report: InspectReport): Shown[] {
  return sectionsOf(report).flatMap(({ rows }) => rows.flat());
}

export function reportPage(report: InspectReport, pictureOf: PictureOf): string {
  const { location, samples, normalize } = report;
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    REPORT_MARK,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>Inspection of ${text(location)}</title>`,
    `<style>${STYLE}</style></head><body><main>`,
    `<h1>${text(location)}</h1>`,
    `<p>${text(countOf(samples, 'sample'))} inspected.</p>`,
    ...(normalize === null
      ? []
      : [
          '<h2>Mean and standard deviation of all images, as a step</h2>',
          `<pre>${text(JSON.stringify({ name: 'normalize', ...normalize }))}</pre>`,
        ]),
    ...sectionsOf(report).map((section) => sectionHtml(section, pictureOf)),
    '</main></body></html>',
    '',
  ].join('\n');
}

/** A heading and rows of samples: one row per group, or one row with all samples of a finding. */
interface Section {
  readonly title: string;
  readonly said: string;
  readonly rows: readonly (readonly Named[])[];
}

function sectionsOf({ bad, findings, duplicates, nearDuplicates, leaks }: InspectReport): Section[] {
  return [
    {
      title: 'Cannot be used',
      said: counted(bad.count),
      rows: [bad.samples.map((sample) => ({ ...sample, from: 'dataset', note: sample.reason }))],
    },
    groupSection('Equal bytes', duplicates),
    groupSection('Look alike', nearDuplicates),
    ...(leaks === null ? [] : [groupSection('In both datasets', leaks)]),
    ...findings.map(findingSection),
  ];
}

function groupSection(title: string, { groups, acrossClasses, samples, first }: InspectGroups): Section {
  const across = acrossClasses === 0 ? '' : `, ${formatCount(acrossClasses)} across classes`;
  return {
    title,
    said: groups === 0 ? 'none' : `${countOf(samples, 'sample')} in ${countOf(groups, 'group')}${across}`,
    rows: first.map((group) => [
      ...group.samples.map((sample): Named => ({ ...sample, from: 'dataset', note: '' })),
      ...group.others.map((sample): Named => ({ ...sample, from: 'against', note: 'of the other dataset' })),
    ]),
  };
}

function findingSection({ name, help, count, samples }: InspectFinding): Section {
  return {
    title: `${name[0]!.toUpperCase()}${name.slice(1)}`,
    said: `${counted(count)} (${help})`,
    rows: [
      samples.map(
        (sample): Named => ({ ...sample, from: 'dataset', note: String(Math.round(sample.value * 100) / 100) }),
      ),
    ],
  };
}

function counted(count: number): string {
  return count === 0 ? 'none' : countOf(count, 'sample');
}

function sectionHtml({ title, said, rows }: Section, pictureOf: PictureOf): string {
  const filled = rows.filter((row) => row.length > 0);
  return [
    `<section><h2>${text(title)}</h2><p>${text(said)}</p>`,
    ...filled.map((row) => `<div class="row">${row.map((sample) => figure(sample, pictureOf)).join('')}</div>`),
    '</section>',
  ].join('\n');
}

function figure(sample: Named, pictureOf: PictureOf): string {
  const picture = pictureOf(sample);
  const shown =
    picture === null
      ? '<div class="none">no picture</div>'
      : `<img alt="" src="data:image/jpeg;base64,${Buffer.from(picture).toString('base64')}">`;
  const lines = [sample.key, sample.class ?? 'no class', sample.note].filter((line) => line !== '');
  return `<figure>${shown}<figcaption>${lines.map((line) => `<bdi>${text(line)}</bdi>`).join('<br>')}</figcaption></figure>`;
}

/** Escapes a name from a user or a shard: markup and control characters become text. */
function text(value: string): string {
  return escapeControls(value)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 0 } main { max-width: 75rem; margin: 0 auto; padding: 1rem }
h1, figcaption, pre { overflow-wrap: anywhere } h2 { margin: 2rem 0 0 } p { margin: .2rem 0 .6rem } pre { white-space: pre-wrap }
.row { display: flex; flex-wrap: wrap; gap: .8rem; padding: .6rem 0; border-top: 1px solid #8884 }
figure { margin: 0; width: 10rem } figcaption { font-size: .8rem }
img, .none { width: 10rem; height: 10rem; object-fit: contain; background: #8882 } .none { display: grid; place-items: center }
`;
