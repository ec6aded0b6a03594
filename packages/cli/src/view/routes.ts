import { OptionError } from '@shardtool/base';
import { type AnnotationOptions, type Dataset, SampleNotFoundError } from '@shardtool/reader';
import { detailOf } from './detail.js';
import type { Marks } from './marks.js';
import type { ModelView } from './model.js';
import { fullPicture, maskPicture, type Picture } from './pictures.js';
import type { DatasetInfo } from './protocol.js';
import type { Queries } from './queries.js';
import { markOf, modelOf, nameOf, queryOf, wholeNumber } from './requests.js';
import type { SampleTable } from './sample-table.js';
import type { Thumbnails } from './thumbnails.js';

/** What answers are made of. */
export interface Viewed {
  readonly dataset: Dataset;
  readonly table: SampleTable;
  readonly overlay: string | null;
  readonly annotations: AnnotationOptions | undefined;
  readonly queries: Queries;
  readonly thumbnails: Thumbnails;
  readonly model: ModelView;
  readonly marks: Marks;
}

interface Asked {
  readonly parameters: URLSearchParams;
  /** Of a POST: what its JSON says. */
  readonly body: unknown;
  /** Whoever asked has gone. */
  readonly signal: AbortSignal;
}

/** JSON, or a picture. */
type Answer = { readonly json: unknown } | { readonly picture: Picture };

export type Route = (viewed: Viewed, asked: Asked) => Promise<Answer>;

/** Pixels of a thumbnail's longer side. */
const SIZES = [96, 160, 256];

export const ROUTES: Readonly<Record<string, Route>> = {
  'GET api/dataset': async (viewed) => ({ json: await infoOf(viewed) }),
  'GET api/rows': async ({ queries }, { parameters }) => ({
    json: await queries.rows(queryOf(parameters), wholeNumber(parameters, 'from'), wholeNumber(parameters, 'count')),
  }),
  'GET api/histogram': async ({ queries }, { parameters }) => ({
    json: await queries.histogram(queryOf(parameters), parameters.get('column') ?? ''),
  }),
  'GET api/sample': async ({ dataset, table, annotations, marks }, { parameters }) => {
    const number = sampleNumber(dataset, parameters);
    const className = table.cls.names[table.cls.codes[number]!] ?? null;
    return { json: await detailOf(dataset, number, { annotations, mark: marks.of(number), className }) };
  },
  'GET api/thumbnail': async ({ dataset, thumbnails }, { parameters, signal }) => {
    const size = wholeNumber(parameters, 'size');
    if (!SIZES.includes(size)) throw new OptionError({}, `size takes ${SIZES.join(', ')}, and not ${size}.`);
    return { picture: await thumbnails.get(sampleNumber(dataset, parameters), size, signal) };
  },
  'GET api/picture': async ({ dataset }, { parameters }) => {
    return { picture: await fullPicture(dataset, sampleNumber(dataset, parameters)) };
  },
  'GET api/mask': async ({ dataset }, { parameters }) => ({
    picture: await maskPicture(dataset, sampleNumber(dataset, parameters), parameters.get('field') ?? ''),
  }),
  'GET api/model': async ({ dataset, model }, { parameters, signal }) => ({
    picture: await model.picture(sampleNumber(dataset, parameters), modelOf(parameters), signal),
  }),
  'GET api/model-objects': async ({ dataset, model }, { parameters, signal }) => ({
    json: await model.objects(sampleNumber(dataset, parameters), modelOf(parameters), signal),
  }),
  'GET api/model-mask': async ({ dataset, model }, { parameters, signal }) => {
    const field = parameters.get('field') ?? '';
    return { picture: await model.mask(sampleNumber(dataset, parameters), field, modelOf(parameters), signal) };
  },
  'GET api/marks': async ({ marks }) => ({ json: marks.list() }),
  'POST api/mark': async ({ dataset, marks }, { body }) => {
    const { number, mark } = markOf(body);
    const { key } = await dataset.get(checkNumber(dataset, number), { checksum: false });
    marks.set(number, key, mark);
    return { json: marks.list() };
  },
  'POST api/overlay': async ({ marks }, { body }) => {
    await marks.save(nameOf(body));
    return { json: marks.list() };
  },
};

function sampleNumber(dataset: Dataset, parameters: URLSearchParams): number {
  return checkNumber(dataset, wholeNumber(parameters, 'number'));
}

function checkNumber(dataset: Dataset, number: number): number {
  if (number < dataset.size) return number;
  throw new SampleNotFoundError({}, `There is no sample ${number}: there are ${dataset.size}.`);
}

async function infoOf({ dataset, table, overlay, marks }: Viewed): Promise<DatasetInfo> {
  return {
    location: dataset.location,
    format: dataset.format,
    samples: table.rows,
    shards: dataset.shards.length,
    bytes: dataset.bytes,
    classes: table.cls.names,
    columns: Array.from(table.columns, ([name, column]) => {
      return { name, kind: column.kind, names: column.kind === 'category' ? column.names.length : 0 };
    }),
    omitted: table.omitted,
    sizesFrom: sizesFrom(dataset, table),
    overlay,
    overlayName: await marks.freeName(),
  };
}

function sizesFrom({ format, location }: Dataset, { width }: SampleTable): string | null {
  if (width.length === 0 || width.some((pixels) => pixels > 0)) return null;
  return format === 'folder' ? `shardtool pack ${location} SHARDS` : `shardtool index ${location}`;
}
