import { z } from 'zod';

/** Every request has a number, which its answer repeats. */
const request = z.number().int();

/** Numbers of earlier batches that are still in use, whose slots must be kept. All others are released. */
const held = z.array(z.number().int());

/** Stands for infinity, which JSON cannot represent. */
const ENDLESS = 'Infinity';

/** A location, shards, or a mixture with its parts and options, which are checked when it is opened. */
const location = z.union([z.string(), z.array(z.string()), z.looseObject({ mixture: z.array(z.looseObject({})) })]);

/** Like the argument of {@link Loader.useTransforms}, which checks it. */
const transforms = z.array(z.object({ epoch: z.number(), transform: z.unknown() }));

/** The options of openDataset. */
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
  /**
   * Opens the dataset and makes its loader. It is sent again for another state. Answer: a description of the dataset.
   */
  z.object({
    kind: z.literal('open'),
    request,
    location,
    /** The options of the loader, which checks them. `epochsPerLoop` may be {@link ENDLESS}. */
    options: z.record(z.string(), z.unknown()),
    withKeys: z.boolean(),
    /** Whether each row has a seed for functions of Python. */
    withRowSeeds: z.boolean(),
    seen,
    held,
    /** The rank that Python detected. It is used if the options do not set a rank. */
    ranks: z.object({
      environment: z.record(z.string(), z.string()),
      frameworks: z.array(z.object({ rank: z.number(), worldSize: z.number(), source: z.string() })),
    }),
  }),
  /** Opens the dataset for single samples. Answer: a description of the dataset. */
  z.object({
    kind: z.literal('openSamples'),
    request,
    location,
    /** The options of {@link SampleDecoder}, which checks them. */
    options: z.record(z.string(), z.unknown()),
    seen,
  }),
  /** Requests single samples by index. Answer: a batch of them, in that order. */
  z.object({
    kind: z.literal('samples'),
    request,
    wanted: z.array(z.number().int()),
    /** For each sample, the epoch and the occurrence that determine its random numbers. */
    draws: z.array(z.tuple([z.number().int(), z.number().int()])),
    /** Whether to return all fields and columns as values, and no decoded image. */
    whole: z.boolean(),
    /** Whether to return images as they are stored. */
    encoded: z.boolean(),
  }),
  /**
   * Asks where the stored images of samples are, so that the other side can read them by itself. Answer: paths; then
   * int32 file [n], float64 offset, bytes and crc32 [n], int32 labels [n]. `paths` is null if the samples have to be
   * requested.
   */
  z.object({ kind: z.literal('imagePlaces'), request, wanted: z.array(z.number().int()), withKeys: z.boolean() }),
  /** Answer: the keys of these samples, by index. */
  z.object({ kind: z.literal('keys'), request, wanted: z.array(z.number().int()) }),
  /** Answer: the index of the sample with this key, or -1. */
  z.object({ kind: z.literal('indexOf'), request, key: z.string() }),
  /** Answer: class numbers of all samples, int32, after the header. */
  z.object({ kind: z.literal('labels'), request }),
  /** Describes the next iteration. `epoch` is like that of {@link Loader.setEpoch}; null: the next one. */
  z.object({ kind: z.literal('info'), request, epoch: z.number().nullable(), transforms }),
  /** Ends the current iteration, if there is one, and starts another. */
  z.object({ kind: z.literal('begin'), request, epoch: z.number().nullable(), transforms, held }),
  /** Releases batches by their numbers, and requests the next one. Answer: a batch, or that there are no more. */
  z.object({ kind: z.literal('next'), request, release: z.array(z.number().int()) }),
  /** Requests the state after the last batch, or the state with which the next iteration starts. */
  z.object({ kind: z.literal('state'), request, epoch: z.number().nullable(), transforms }),
  /** Changes the weights in a state of a mixture: they apply from that position on. */
  z.object({ kind: z.literal('withWeights'), request, state: z.unknown(), weights: z.array(z.number()) }),
  z.object({ kind: z.literal('report'), request }),
]);

export type Request = z.output<typeof schema>;
export type RequestOf<Kind extends Request['kind']> = Extract<Request, { kind: Kind }>;

/** Throws if the value is not a request. */
export function parseRequest(header: unknown): Request {
  const parsed = schema.parse(header);
  if (parsed.kind === 'open' && parsed.options.epochsPerLoop === ENDLESS)
    parsed.options.epochsPerLoop = Number.POSITIVE_INFINITY;
  return parsed;
}
