import { OptionError } from '@shardtool/base';
import { type AnnotationOptions, type Dataset, SampleNotFoundError } from '@shardtool/reader';
import { detailOf } from '../detail.js';
import type { Marks } from '../marks.js';
import type { ModelView } from '../model.js';
import { fullPicture, maskPicture, type Picture } from '../pictures/pictures.js';
import type { Thumbnails } from '../pictures/thumbnails.js';
import type { DatasetInfo } from '../protocol.js';
import type { Queries } from '../queries.js';
import type { SampleTable } from '../sample-table.js';
import { markOf, modelOf, nameOf, queryOf, wholeNumber } from './requests.js';

/** What the handlers of requests use. */
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
  /** Parsed JSON of a POST request. */
  readonly body: unknown;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

/** JSON or a picture. */
type Answer = { readonly json: unknown } | { readonly picture: Picture };

export type Route = (viewed: Viewed, asked: Asked) => Promise<Answer>;

/** Allowed sizes of thumbnails: pixels of the longer side. */
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
    const index = sampleIndex(dataset, parameters);
    const className = table.cls.names[table.cls.codes[index]!] ?? null;
    return { json: await detailOf(dataset, index, { annotations, mark: marks.of(index), className }) };
  },
  'GET api/thumbnail': async ({ dataset, thumbnails }, { parameters, signal }) => {
    const size = wholeNumber(parameters, 'size');
    if (!SIZES.includes(size)) throw new OptionError({}, `size takes ${SIZES.join(', ')}, not ${size}.`);
    return { picture: await thumbnails.get(sampleIndex(dataset, parameters), size, signal) };
  },
  'GET api/picture': async ({ dataset }, { parameters }) => {
    return { picture: await fullPicture(dataset, sampleIndex(dataset, parameters)) };
  },
  'GET api/mask': async ({ dataset }, { parameters }) => ({
    picture: await maskPicture(dataset, sampleIndex(dataset, parameters), parameters.get('field') ?? ''),
  }),
  'GET api/model': async ({ dataset, model }, { parameters, signal }) => ({
    picture: await model.picture(sampleIndex(dataset, parameters), modelOf(parameters), signal),
  }),
  'GET api/model-objects': async ({ dataset, model }, { parameters, signal }) => ({
    json: await model.objects(sampleIndex(dataset, parameters), modelOf(parameters), signal),
  }),
  'GET api/model-mask': async ({ dataset, model }, { parameters, signal }) => {
    const field = parameters.get('field') ?? '';
    return { picture: await model.mask(sampleIndex(dataset, parameters), field, modelOf(parameters), signal) };
  },
  'GET api/marks': async ({ marks }) => ({ json: marks.list() }),
  'POST api/mark': async ({ dataset, marks }, { body }) => {
    const { index, mark } = markOf(body);
    const { key } = await dataset.get(checkIndex(dataset, index), { checksum: false });
    marks.set(index, key, mark);
    return { json: marks.list() };
  },
  'POST api/overlay': async ({ marks }, { body }) => {
    await marks.save(nameOf(body));
    return { json: marks.list() };
  },
};

function sampleIndex(dataset: Dataset, parameters: URLSearchParams): number {
  return checkIndex(dataset, wholeNumber(parameters, 'index'));
}

function checkIndex(dataset: Dataset, index: number): number {
  if (index < dataset.size) return index;
  throw new SampleNotFoundError({}, `There is no sample ${index}: the dataset has ${dataset.size} samples.`);
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
    unread: 0,
    isSmall: true,
  };
}

function sizesFrom({ format, location }: Dataset, { width }: SampleTable): string | null {
  if (width.length === 0 || width.some((pixels) => pixels > 0)) return null;
  return format === 'folder' ? `shardtool pack ${location} SHARDS` : `shardtool index ${location}`;
}
