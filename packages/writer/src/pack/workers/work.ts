import type { WrittenLayout } from '@shardtool/format';
import type { CheckedOptions } from '../../options.js';
import type { AppendBase } from '../../output/append-base.js';
import type { Destination } from '../../output/destination.js';
import type { OutputFolder } from '../../output/output-folder.js';
import type { Part } from '../../part.js';
import type { ProgressTicker } from '../../progress.js';
import type { OpenSource } from '../../source/open-source.js';
import type { PackWorkers } from './pack-workers.js';

/** Input for preparing a pack. */
export interface PrepareWork {
  readonly source: OpenSource;
  /** Local folder of the output. */
  readonly output: string;
  readonly options: CheckedOptions;
  /** The dataset that is added to. */
  readonly base: AppendBase | null;
  readonly workers: PackWorkers;
  readonly ticker: ProgressTicker;
  /** Where the output goes, if that is not only a local folder. */
  readonly destination?: Destination | undefined;
}

/** Input for writing shards. */
export interface PackWork extends PrepareWork {
  readonly folder: OutputFolder;
  readonly destination: Destination;
  readonly layout: WrittenLayout;
  readonly part: Part | null;
}
