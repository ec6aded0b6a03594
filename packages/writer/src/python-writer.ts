import { OptionError } from '@shardtool/base';
import { type Answer, errorHeader, serve } from '@shardtool/reader/bridge';
import type { StorageOptions } from '@shardtool/storage';
import { z } from 'zod';
import { commitParts } from './pack/commit-plan.js';
import { parsePart } from './part.js';
import { abandonJob, prepareJob } from './samples/job.js';
import type { NewSample, NewValue } from './samples/new-sample.js';
import { Writer, type WriterOptions } from './samples/writer.js';

const request = z.number().int();
const schema = z.discriminatedUnion('kind', [
  /** The options are checked by {@link Writer}. */
  z.object({ kind: z.literal('open'), request, output: z.string(), options: z.record(z.string(), z.unknown()) }),
  z.object({
    kind: z.literal('add'),
    request,
    /**
     * Checked by {@link Writer.add}, like the columns: an invalid sample is answered with an error, and the process
     * continues.
     */
    key: z.unknown(),
    /** Fields whose values JSON can represent, as pairs, because any name may be a field. */
    values: z.array(z.tuple([z.string(), z.unknown()])),
    /** Names and lengths of the fields whose bytes follow the header. */
    bytes: z.array(z.tuple([z.string(), z.number().int().nonnegative()])),
    columns: z.array(z.tuple([z.string(), z.unknown()])),
  }),
  z.object({ kind: z.literal('close'), request }),
  z.object({ kind: z.literal('abandon'), request }),
  /** Before and after the parts of a job, each without a writer. */
  z.object({ kind: z.literal('prepareJob'), request, output: z.string(), options: z.record(z.string(), z.unknown()) }),
  z.object({
    kind: z.literal('commitJob'),
    request,
    output: z.string(),
    parts: z.array(z.number()),
    storage: z.unknown().optional(),
  }),
  z.object({
    kind: z.literal('abandonJob'),
    request,
    output: z.string(),
    job: z.string(),
    storage: z.unknown().optional(),
  }),
]);
type Request = z.output<typeof schema> & { readonly rest: Uint8Array };

let writer: Writer | null = null;

async function work(asked: Request): Promise<Answer> {
  if (asked.kind === 'open') {
    writer = new Writer(asked.output, writerOptions(asked.options));
    return { header: { kind: 'opened' } };
  }
  switch (asked.kind) {
    case 'prepareJob':
      await prepareJob(asked.output, asked.options as WriterOptions);
      return { header: { kind: 'prepared' } };
    case 'commitJob': {
      const storage = (asked.storage ?? undefined) as StorageOptions | undefined;
      return {
        header: { kind: 'committed', report: await commitParts(asked.output, { parts: asked.parts, storage }) },
      };
    }
    case 'abandonJob':
      await abandonJob(asked.output, asked.job, (asked.storage ?? undefined) as StorageOptions | undefined);
      return { header: { kind: 'abandoned' } };
  }
  if (writer === null) throw new OptionError({}, 'No writer is open: send the request "open" first.');
  switch (asked.kind) {
    case 'add':
      await writer.add(sampleOf(asked));
      return { header: { kind: 'added' } };
    case 'close':
      return { header: { kind: 'closed', report: await writer.close() } };
    case 'abandon':
      await writer.abandon();
      return { header: { kind: 'abandoned' } };
  }
}

/** The options of a writer in Python, in which `part` is text: `2/4`, or `2/*` if the number of parts is open. */
function writerOptions({ part, ...options }: Readonly<Record<string, unknown>>): WriterOptions {
  if (part === undefined) return options;
  const text = typeof part === 'string' ? part : JSON.stringify(part);
  const number = Number(/^(\d{1,6})\/\*$/.exec(text)?.[1]);
  return { ...options, part: number >= 1 ? { index: number - 1 } : parsePart(text) };
}

function sampleOf({ key, values, bytes, columns, rest }: Extract<Request, { kind: 'add' }>): NewSample {
  const fields: [string, NewValue][] = values.map(([name, value]) => [name, value as NewValue]);
  let at = 0;
  for (const [name, length] of bytes) {
    fields.push([name, rest.subarray(at, at + length)]);
    at += length;
  }
  return { ...Object.fromEntries(fields), key, columns: Object.fromEntries(columns) } as NewSample;
}

await serve('writer', () => ({
  parse: (header, rest): Request => ({ ...schema.parse(header), rest }),
  answer: (asked: Request) => work(asked).catch((error: unknown) => ({ header: errorHeader(error) })),
}));
