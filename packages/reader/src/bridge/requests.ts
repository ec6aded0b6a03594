import { z } from 'zod';

/** Every request has a number, which its answer repeats. */
const request = z.number().int();

/** Numbers of earlier batches that are still in use: their slots stay as they are. All others are given back. */
const held = z.array(z.number().int());

/** JSON has no number without end. */
const ENDLESS = 'Infinity';

/** A place, shards, or a mixture: its parts and options, checked there. */
const location = z.union([z.string(), z.array(z.string()), z.looseObject({ mixture: z.array(z.looseObject({})) })]);

/** As of {@link Loader.useTransforms}, checked there. */
const transforms = z.array(z.object({ epoch: z.number(), transform: z.unknown() }));

/** Those of openDataset. */
const seen = z.object({
  overlay: z.string().optional(),
  split: z.string().optional(),
  version: z.string().optional(),
  layout: z.string().optional(),
  features: z
    .strictObject({ image: z.string().optional(), label: z.string().optional(), key: z.string().optional() })
    .optional(),
  excludeKeys: z.array(z.string()).optional(),
  maxSampleBytes: z.union([z.number(), z.string()]).optional(),
  storage: z
    .strictObject({
      endpointUrl: z.string().optional(),
      region: z.string().optional(),
      unsigned: z.boolean().optional(),
      requesterPays: z.boolean().optional(),
    })
    .optional(),
});

const schema = z.discriminatedUnion('kind', [
  /** Opens the dataset and makes its loader; once more for another state. Answer: what the dataset is. */
  z.object({
    kind: z.literal('open'),
    request,
    location,
    /** Those of the loader, checked there; `epochsPerLoop` may be {@link ENDLESS}. */
    options: z.record(z.string(), z.unknown()),
    withKeys: z.boolean(),
    /** Each row comes with a seed for functions of Python. */
    withRowSeeds: z.boolean(),
    seen,
    held,
    /** Where Python finds its rank, if the options do not say it. */
    ranks: z.object({
      environment: z.record(z.string(), z.string()),
      distributed: z.tuple([z.number(), z.number()]).nullable(),
    }),
  }),
  /** Opens the dataset for single samples. Answer: what the dataset is. */
  z.object({
    kind: z.literal('openSamples'),
    request,
    location,
    /** Those of {@link SampleDecoder}, checked there. */
    options: z.record(z.string(), z.unknown()),
    seen,
  }),
  /** Single samples by number. Answer: a batch of them, in that order. */
  z.object({
    kind: z.literal('samples'),
    request,
    wanted: z.array(z.number().int()),
    /** For each of them the epoch and the occurrence that its random numbers belong to. */
    draws: z.array(z.tuple([z.number().int(), z.number().int()])),
    /** All of their fields and columns, as values, and no decoded image. */
    whole: z.boolean(),
    /** Images as they are stored. */
    encoded: z.boolean(),
  }),
  /** Answer: the number of the sample of this key, or -1. */
  z.object({ kind: z.literal('indexOf'), request, key: z.string() }),
  /** Answer: class numbers of all samples, int32, behind the header. */
  z.object({ kind: z.literal('labels'), request }),
  /** Describes the next iteration. `epoch` as of {@link Loader.setEpoch}; null: the next one. */
  z.object({ kind: z.literal('info'), request, epoch: z.number().nullable(), transforms }),
  /** Ends the iteration under way, if any, and begins one. */
  z.object({ kind: z.literal('begin'), request, epoch: z.number().nullable(), transforms, held }),
  /** Gives batches back by their numbers, and asks for the next. Answer: a batch, or that there are no more. */
  z.object({ kind: z.literal('next'), request, release: z.array(z.number().int()) }),
  /** The state after the last batch, or of what the next iteration begins with. */
  z.object({ kind: z.literal('state'), request, epoch: z.number().nullable(), transforms }),
  /** A state of a mixture, with other weights from there on. */
  z.object({ kind: z.literal('withWeights'), request, state: z.unknown(), weights: z.array(z.number()) }),
  z.object({ kind: z.literal('report'), request }),
]);

export type Request = z.output<typeof schema>;
export type RequestOf<Kind extends Request['kind']> = Extract<Request, { kind: Kind }>;

/** Throws where it is no request. */
export function parseRequest(header: unknown): Request {
  const parsed = schema.parse(header);
  if (parsed.kind === 'open' && parsed.options.epochsPerLoop === ENDLESS)
    parsed.options.epochsPerLoop = Number.POSITIVE_INFINITY;
  return parsed;
}
