export * from './errors.js';
export { type IndexReport, indexShards } from './index-shards.js';
export { type ImageFormat, PACK_DEFAULTS, type PackOptions, type PackProgress } from './options.js';
export { type PackReport, pack } from './pack.js';
export { type PackPlan, type PlannedLabels, type PlanOptions, planShards } from './plan.js';
export type { Fault } from './verify/faults.js';
export { type VerifyOptions, type VerifyProgress, type VerifyReport, verify } from './verify/verify.js';
