/**
 * Shapes of the JSON output of commands, in short: `int`, `num`, `text`, `bool`, `any`, a list `[shape]`, an object of shapes, `?`
 * after a name for a property that may be missing, and {@link orNull}. docs/json.schema.json is generated from them.
 */
export type Shape = string | readonly Shape[] | { readonly [name: string]: Shape };

/** Name of the only property of a shape that may also be null. */
const OR_NULL = '|null';

function orNull(shape: Shape): Shape {
  return { [OR_NULL]: shape };
}

/** An object with any names, all of one shape. */
const EACH = '*';
const DISTRIBUTION = {
  ...{ count: 'int', smallest: 'num', largest: 'num', mean: 'num', median: 'num' },
  histogram: [{ from: 'num', to: 'num', count: 'int' }],
} as const;
const PARTIAL_FIELDS = [{ name: 'text', samples: 'int' }] as const;
const GROUPS = { groups: 'int', acrossClasses: 'int', samples: 'int', first: ['any'] } as const;
const OVERLAY = {
  ...{
    name: 'text',
    parent: orNull('text'),
    hash: 'text',
    note: 'text',
    excluded: 'int',
    relabelled: 'int',
    set: 'int',
  },
  ...{ kept: orNull('int'), splits: [{ name: 'text', samples: 'int', rule: 'any' }] },
} as const;
const ADDED = {
  ...{ file: 'text', hash: 'text', excluded: 'int', relabelled: 'int', set: 'int', classes: 'int' },
  newClasses: [{ name: 'text', hint: 'text' }],
} as const;
const CACHE = { pieces: 'int', bytes: 'int' } as const;
const CROPS = orNull({ indexed: 'int', refused: { [EACH]: 'int' } });

/** Shape of each line, by command. If a command prints lines of several shapes, the name of the shape follows a slash. */
export const JSON_SHAPES: Readonly<Record<string, Shape>> = {
  error: {
    error: {
      ...{ code: 'text', message: 'text', exitCode: 'int', 'help?': 'text' },
      ...{ 'shard?': 'text', 'key?': 'text', 'offset?': 'int', 'path?': 'text', 'status?': 'int' },
    },
  },
  pack: {
    ...{
      files: 'int',
      samples: 'int',
      shards: 'int',
      bytes: 'int',
      sourceBytes: 'int',
      quarantined: 'int',
      renamed: 'int',
    },
    ...{ orientationBaked: 'int', duplicates: 'int', classConflicts: 'int', warnings: 'int', metadataKept: 'int' },
    ...{ crops: CROPS, metadata: orNull('text'), narrowed: 'int', refused: 'int', metaSamples: 'int' },
    ...{
      partialFields: PARTIAL_FIELDS,
      keptShards: 'int',
      pendingShards: 'int',
      isCommitted: 'bool',
      wasCommitted: 'bool',
    },
    ...{ classes: ['text'], skippedFiles: 'int', skipped: { [EACH]: 'int' }, skippedAnnotations: { [EACH]: 'int' } },
    ...{
      skippedFolders: ['text'],
      hiddenFolders: ['text'],
      emptyFolders: ['text'],
      unlabelled: 'int',
      missingFiles: 'int',
    },
    ...{
      'changes?': 'any',
      'unlistedMissing?': 'int',
      'keptOptions?': 'any',
      'splits?': ['any'],
      'splitSidecars?': ['text'],
    },
  },
  convert: {
    ...{ samples: 'int', shards: 'int', bytes: 'int', skippedEntries: 'int', skippedLinks: 'int', leftOut: 'int' },
    ...{ metaSamples: 'int', wordClasses: 'int', unnamedClasses: 'int', partialFields: PARTIAL_FIELDS },
    ...{ keptShards: 'int', wasCommitted: 'bool' },
  },
  index: {
    ...{ shards: 'int', kept: 'int', samples: 'int', skippedEntries: 'int', skippedLinks: 'int', crops: CROPS },
    columns: orNull({ columns: [{ name: 'text', type: 'text' }], unreadable: 'int', unlabelled: 'int' }),
  },
  merge: {
    ...{ output: 'text', samples: 'int', datasets: 'int', classes: 'int', copy: orNull('text') },
    duplicateKeys: { count: 'int', examples: ['text'] },
  },
  commit: {
    ...{ samples: 'int', shards: 'int', bytes: 'int', quarantined: 'int', wasCommitted: 'bool' },
    partialFields: PARTIAL_FIELDS,
  },
  log: [
    {
      ...{ version: 'text', parent: orNull('text'), command: orNull('text'), time: orNull('text') },
      ...{ isCurrent: 'bool', isKept: 'bool' },
      ...{ samples: orNull('int'), shards: orNull('int'), bytes: orNull('int') },
    },
  ],
  restore: {
    ...{ version: 'text', replaced: 'text', samples: 'int', shards: 'int', bytes: 'int', isChanged: 'bool' },
  },
  erase: {
    ...{ erased: 'int', resumed: 'int', missing: 'int', rewrittenShards: 'int', removedShards: 'int', version: 'text' },
    ...{ heldBy: ['text'], searchedShards: orNull('int') },
  },
  compact: {
    ...{ shardsBefore: 'int', shards: 'int', joinedShards: 'int', madeShards: 'int', madeBytes: 'int' },
    version: 'text',
  },
  gc: { keptVersions: ['text'], removedVersions: ['text'], removedFiles: 'int', removedBytes: 'int' },
  ls: {
    ...{ format: 'text', identity: orNull('text'), samples: 'int', bytes: 'int', fields: ['text'] },
    ...{ classes: [{ name: 'text', samples: orNull('int') }], splits: ['text'], otherLayouts: ['text'] },
    ...{ skippedEntries: 'int', shards: [{ file: 'text', bytes: 'int', samples: 'int' }] },
  },
  'ls/samples': {
    ...{ shard: 'text', key: 'text', source: orNull('text'), label: orNull('int'), class: orNull('text') },
    ...{ width: 'int', height: 'int', orientation: 'int', fields: { [EACH]: 'int' }, columns: { [EACH]: 'any' } },
  },
  stats: {
    ...{ format: 'text', shards: 'int', samples: 'int', bytes: 'int', samplesWithoutClass: 'int', turned: 'int' },
    ...{ classes: [{ name: 'text', samples: 'int', bytes: 'int' }], fields: [{ name: 'text', bytes: DISTRIBUTION }] },
    ...{ kinds: [{ kind: 'text', samples: 'int', bytes: 'int' }], width: DISTRIBUTION, height: DISTRIBUTION },
    ...{ pixels: DISTRIBUTION, shardSamples: DISTRIBUTION, shardBytes: DISTRIBUTION },
    ...{ repeatedKeys: { count: 'int', examples: ['text'] }, 'objects?': 'any' },
  },
  inspect: {
    ...{ location: 'text', samples: 'int', known: 'int', isKept: 'bool', bad: { count: 'int', samples: ['any'] } },
    ...{ findings: [{ name: 'text', help: 'text', count: 'int', samples: ['any'] }], duplicates: GROUPS },
    ...{ nearDuplicates: GROUPS, leaks: orNull(GROUPS), normalize: orNull({ mean: ['num'], std: ['num'] }) },
  },
  view: { address: 'text' },
  preview: {
    ...{ output: 'text', images: 'int', sizes: [{ width: 'int', height: 'int' }] },
    ...{ bad: [{ key: 'text', reason: 'text' }], classes: orNull(['text']) },
  },
  cat: { shard: 'text', key: 'text', field: 'text', bytes: 'int', base64: 'text' },
  'verify/fault': { shard: 'text', 'key?': 'text', 'path?': 'text', reason: 'text', 'kept?': 'bool' },
  verify: {
    ...{ shards: 'int', samples: 'int', bytes: 'int', faults: 'int', damagedSamples: 'int', warnings: 'int' },
    ...{ skippedEntries: 'int', checksums: 'bool' },
    record: orNull({ dueShards: 'int', oldest: orNull('text'), file: orNull('text'), fault: orNull('text') }),
  },
  'verify/fix': {
    ...{ shards: 'int', samples: 'int', repairedShards: 'int', removedShards: 'int', newManifest: 'bool' },
    ...{ takenOut: 'int', restored: 'int', unproven: 'int' },
    ...{ lostColumns: ['any'], lostClasses: ['any'], unprovenClasses: ['any'] },
  },
  split: { file: 'text', hash: 'text', isNew: 'bool', splits: [{ name: 'text', samples: 'int', rule: 'any' }] },
  subset: { file: 'text', hash: 'text', samples: 'int' },
  relabel: ADDED,
  'overlay add': ADDED,
  'overlay ls': [OVERLAY],
  'overlay log': [OVERLAY],
  'overlay show': 'any',
  'overlay rm': { kept: 'text' },
  // Plans of aspect-ratio buckets and of mixtures have only the first four in common with others.
  plan: {
    ...{ samples: 'int', worldSize: 'int', batchSize: 'int', batches: 'int', 'shards?': 'int', 'globalBatch?': 'int' },
    ...{ 'lastBatch?': 'text', 'paddedRows?': 'int', 'droppedSamples?': 'int', 'advice?': ['text'] },
    ...{
      'order?': { unit: 'text', streams: 'int', blockSamples: 'int', shuffleBufferSize: 'int' },
      'reads?': { count: 'int', meanBytes: 'num', largestBytes: 'int' },
      'memory?': { buffers: 'int', bufferBytes: 'int', readBytes: 'int', slotBytes: 'int', totalBytes: 'int' },
      'step?': orNull('any'),
      'storage?': orNull('any'),
    },
    'shuffleQuality?': {
      ...{ shard: orNull('num'), class: orNull('num'), repeat: orNull('num'), sampledBatches: 'int' },
    },
  },
  bench: {
    ...{ isFirstInRate: 'bool', step: orNull('any'), advice: ['text'], imagesPerSecond: 'num', images: 'int' },
    ...{ batches: 'int', batchSize: 'int', workers: 'int', checksum: 'text', batchWaitP50Ms: 'num' },
    ...{
      batchWaitP99Ms: 'num',
      firstBatchMs: 'num',
      peakRssBytes: 'int',
      readBufferPeakBytes: 'int',
      slotBytes: 'int',
    },
    ...{ mainThreadMicrosPerSample: 'num', boundBy: { io: 'num', decode: 'num', consumer: 'num' } },
    ...{ codec: orNull({ name: 'text', reason: 'text' }), seconds: 'num', storage: orNull('any'), warnings: 'int' },
    ...{ cropIndex: { used: 'bool', reason: 'text', spliced: 'int', others: 'int' }, bad: 'int', badKeys: ['text'] },
  },
  tune: {
    ...{ imagesPerSecond: 'num', decodedPerSecond: 'num', readPerSecond: 'num', limit: 'text', sampleImages: 'int' },
    gains: [{ what: 'text', times: 'num', least: 'num', most: 'num', how: 'text' }],
    ...{ turns: 'int', otherPrograms: orNull('num'), memoryBytes: 'int', fitsMemory: 'bool' },
    options: { workers: 'int', prefetchBatches: 'int' },
  },
  transforms: {
    transforms: [{ name: 'text', about: 'text', steps: ['any'] }],
    views: [{ name: 'text', about: 'text', views: 'any' }],
  },
  unpack: { folder: 'text', files: 'int', samples: 'int', skippedEntries: 'int' },
  'cache ls': CACHE,
  'cache clear': CACHE,
  completion: { shell: 'text', script: 'text' },
};

const TYPES: Readonly<Record<string, object>> = {
  int: { type: 'integer' },
  num: { type: 'number' },
  text: { type: 'string' },
  bool: { type: 'boolean' },
  any: {},
};

/** A shape as JSON Schema (draft 2020-12). Further properties are allowed: later versions may add some. */
export function schemaOf(shape: Shape): object {
  if (typeof shape === 'string') return TYPES[shape]!;
  if (Array.isArray(shape)) return { type: 'array', items: schemaOf((shape as readonly Shape[])[0]!) };
  const entries = Object.entries(shape as { readonly [name: string]: Shape });
  if (entries[0]?.[0] === OR_NULL) return { anyOf: [schemaOf(entries[0][1]), { type: 'null' }] };
  if (entries[0]?.[0] === EACH) return { type: 'object', additionalProperties: schemaOf(entries[0][1]) };
  return {
    type: 'object',
    required: entries.flatMap(([name]) => (name.endsWith('?') ? [] : [name])),
    properties: Object.fromEntries(entries.map(([name, one]) => [name.replace(/\?$/, ''), schemaOf(one)])),
  };
}

interface Schema {
  readonly type?: string;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
}

/**
 * Paths of a value at which it differs from a schema, of the keywords that {@link schemaOf} uses. Stricter than JSON Schema: a property
 * that the schema does not name is a fault, so that no property stays undocumented.
 */
export function faultsOf(value: unknown, schema: Schema, at = '$'): string[] {
  if (schema.anyOf !== undefined) {
    const found = schema.anyOf.map((one) => faultsOf(value, one, at));
    return found.some((faults) => faults.length === 0) ? [] : found[0]!;
  }
  if (schema.type === undefined) return [];
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const isOfType = schema.type === 'integer' ? Number.isInteger(value) : type === schema.type;
  if (!isOfType) return [`${at}: ${type} instead of ${schema.type}`];
  if (Array.isArray(value)) return value.flatMap((one, i) => faultsOf(one, schema.items!, `${at}[${i}]`));
  if (type !== 'object') return [];
  const object = value as Record<string, unknown>;
  const missing = (schema.required ?? []).filter((name) => !(name in object)).map((name) => `${at}.${name} is missing`);
  const inside = Object.entries(object).flatMap(([name, one]) => {
    const own = schema.properties?.[name] ?? schema.additionalProperties;
    return own === undefined ? [`${at}.${name} is not in the schema`] : faultsOf(one, own, `${at}.${name}`);
  });
  return [...missing, ...inside];
}
