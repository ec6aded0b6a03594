import { isRemote } from '@shardtool/storage';
import type { CheckedOptions } from '../options.js';
import { isReadAhead } from '../source/open-source.js';
import { packHere } from './pack-here.js';
import type { PackReport } from './report.js';
import { packApart } from './workers/pack-apart.js';

/** The source, output and options of a pack. */
export interface PackRequest {
  readonly source: string;
  readonly output: string;
  readonly options: CheckedOptions;
}

/** Packs one dataset: a slow folder in a separate process with many threads for calls, everything else in this one. */
export async function packOne(request: PackRequest): Promise<PackReport> {
  const { source, options } = request;
  options.signal?.throwIfAborted();
  const isBucket = isRemote(source);
  const isSlowFolder = !isBucket && isReadAhead(source, options.inFlight);
  return isSlowFolder ? packApart(request) : packHere(request, isBucket);
}
