/**
 * The answers that the page of `view --static` needs, computed in the page itself. The dataset is read by `shardtool/web`, and
 * filtered, counted and sorted by the modules of the server.
 */
import { SampleDecodeError, toMessage } from '@shardtool/base';
import { imageOf, openDataset, type WebDataset } from '@shardtool/reader/web';
import { detailOf } from './detail.js';
import type { DatasetInfo, Histogram, Query, Row, Rows, SampleDetail } from './protocol.js';
import { Queries } from './queries.js';
import { readSampleTable, type SampleTable } from './sample-table.js';

/** Up to this number of samples, all columns are read when the page opens: some 2 MB. */
const READ_AT_ONCE = 50_000;
/** Maximum number of rows of one answer. */
const MOST_ROWS = 1000;

const SHOWN_BY_BROWSERS: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/webp',
  'image/gif',
  'image/avif',
  'image/bmp',
]);

/** A picture for an img element. */
export interface StaticPicture {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export class StaticView {
  readonly #dataset: WebDataset;
  readonly #url: string;
  #table: Promise<SampleTable> | null = null;
  #queries: Promise<Queries> | null = null;
  /** Indices that the last expression without other filters selects. */
  #selected: { readonly where: string; readonly indices: Promise<Uint32Array> } | null = null;

  private constructor(dataset: WebDataset, url: string) {
    this.#dataset = dataset;
    this.#url = url;
  }

  /** Opens the dataset at a URL. Rejects with the errors of `openDataset`. */
  static async open(url: string): Promise<StaticView> {
    return new StaticView(await openDataset(url), url);
  }

  /** Facts about the dataset. Its columns are read if it is small, or if `all` is true. */
  async info(all = false): Promise<DatasetInfo> {
    const { size, shards, bytes, classes, format } = this.#dataset;
    const isRead = all || this.#table !== null;
    const table = isRead ? await this.#readTable() : null;
    return {
      location: this.#url,
      format,
      samples: size,
      shards: shards.length,
      bytes,
      classes,
      columns: Array.from(table?.columns ?? [], ([name, column]) => {
        return { name, kind: column.kind, names: column.kind === 'category' ? column.names.length : 0 };
      }),
      omitted: table?.omitted ?? [],
      sizesFrom: null,
      overlay: null,
      overlayName: '',
      unread: table === null ? size : 0,
      isSmall: size <= READ_AT_ONCE,
    };
  }

  async rows(query: Query, from: number, count: number): Promise<Rows> {
    const isPlain = query.sort === null && isEmpty(query.ranges) && isEmpty(query.values);
    if (!isPlain || this.#table !== null) return (await this.#allQueries()).rows(query, from, count);
    const where = query.where.trim();
    const indices = where === '' ? null : await this.#select(where);
    const total = indices?.length ?? this.#dataset.size;
    const rows: Row[] = [];
    for (let place = from; place < Math.min(total, from + Math.min(count, MOST_ROWS)); place++) {
      const { index, key, className, label, width, height } = await this.#dataset.row(indices?.[place] ?? place);
      const cls = className ?? (label < 0 ? null : String(label));
      rows.push({ index, key, cls, width, height, value: null, mark: null });
    }
    return { total, from, rows };
  }

  async histogram(query: Query, column: string): Promise<Histogram> {
    return (await this.#allQueries()).histogram(query, column);
  }

  async sample(index: number): Promise<SampleDetail> {
    const { className } = await this.#dataset.row(index);
    const { stored } = this.#dataset;
    const dataset = {
      classes: stored.classes,
      size: stored.size,
      shards: stored.shards,
      get: (number: number, options: { readonly checksum: boolean }) => this.#dataset.get(number, options),
      files: {
        firstSample: stored.files.firstSample,
        index: (shard: number) => this.#dataset.indexOfShard(shard),
      },
    };
    return detailOf(dataset, index, { annotations: undefined, mark: null, className });
  }

  /** Returns the image of a sample as it is stored. Throws SampleDecodeError if no image of it can be shown by browsers. */
  async picture(index: number): Promise<StaticPicture> {
    const sample = await this.#dataset.get(index, { checksum: false });
    const image = imageOf(sample);
    if (image === null) throw new SampleDecodeError(sample, 'it has no image');
    if (!SHOWN_BY_BROWSERS.has(image.type)) {
      throw new SampleDecodeError(sample, `browsers do not show ${image.field.split('.').at(-1)}`);
    }
    return { type: image.type, bytes: image.bytes };
  }

  #readTable(): Promise<SampleTable> {
    this.#table ??= readSampleTable(this.#dataset.stored).catch((error: unknown) => {
      this.#table = null;
      throw error;
    });
    return this.#table;
  }

  #allQueries(): Promise<Queries> {
    this.#queries ??= this.#readTable().then(
      (table) => new Queries((text) => this.#matches(text), table, { of: () => null }),
    );
    this.#queries.catch(() => {
      this.#queries = null;
    });
    return this.#queries;
  }

  async #matches(text: string): Promise<Uint8Array> {
    const holds = new Uint8Array(this.#dataset.size);
    for (const index of await this.#select(text)) holds[index] = 1;
    return holds;
  }

  #select(where: string): Promise<Uint32Array> {
    if (this.#selected?.where !== where) {
      this.#selected = { where, indices: this.#dataset.where(where) };
      this.#selected.indices.catch(() => {
        if (this.#selected?.where === where) this.#selected = null;
      });
    }
    return this.#selected.indices;
  }
}

/** Returns an error as the page shows it: a sentence, and the column of the text of `where` that it is about. */
export function refusalOf(error: unknown): { readonly message: string; readonly column?: number } {
  const { message } = error as Error;
  const { column } = error as { readonly column?: unknown };
  return { message: toMessage(message), ...(typeof column === 'number' && { column }) };
}

function isEmpty(given: object): boolean {
  return Object.keys(given).length === 0;
}
