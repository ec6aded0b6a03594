import { OptionError } from '@shardtool/base';

/** Port and host at which metrics are served. */
export interface MetricsOptions {
  /** Port of the first rank of this machine. Each further rank takes the next one. 0: a free port. */
  readonly port: number;
  /** Default: `127.0.0.1`, which only this machine reaches. */
  readonly host?: string | undefined;
}

/** A host and port to listen on. */
export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
  /** The setting, for messages. */
  readonly source: 'metrics' | 'SHARDTOOL_METRICS';
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = '127.0.0.1';
const LAST_PORT = 65_535;

/** Sends metrics by OTLP, and serves none. */
export const OTLP = 'otlp';

export function isMetricsOptions(value: unknown): boolean {
  if (value === false || value === OTLP) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { port, host, ...others } = value as Readonly<Record<string, unknown>>;
  const isHost = host === undefined || (typeof host === 'string' && host !== '');
  return isPort(port) && isHost && Object.keys(others).length === 0;
}

/**
 * The address at which this process serves its metrics; null if it serves none. The option has priority over
 * `SHARDTOOL_METRICS`, which is `:9464`, `HOST:PORT` or `otlp`. Throws {@link OptionError} if that variable is none of these.
 */
export function metricsAddress(
  option: MetricsOptions | typeof OTLP | false | undefined,
  environment: Environment,
): MetricsAddress | null {
  if (option === false || option === OTLP) return null;
  if (option !== undefined) {
    const { host = LOOPBACK, port } = option;
    return { host, port: ofLocalRank(port, 'metrics', environment), source: 'metrics' };
  }
  const text = environment.SHARDTOOL_METRICS;
  if (text === undefined || text === '' || text === OTLP) return null;
  const found = /^(?:(\[[^\]]+\]|[^:[\]]*):)?(\d{1,5})$/.exec(text);
  if (found === null || !isPort(Number(found[2]))) {
    throw new OptionError(
      {},
      `SHARDTOOL_METRICS is "${text}": set it to a port such as ":9464", to a host and port such as "0.0.0.0:9464", to "otlp", or unset it.`,
    );
  }
  const host = found[1]?.replace(/^\[|\]$/g, '') || LOOPBACK;
  return { host, port: ofLocalRank(Number(found[2]), 'SHARDTOOL_METRICS', environment), source: 'SHARDTOOL_METRICS' };
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LAST_PORT;
}

/** Processes of one machine cannot share a port. */
function ofLocalRank(port: number, source: string, { LOCAL_RANK, SLURM_LOCALID }: Environment): number {
  const text = LOCAL_RANK || SLURM_LOCALID || '0';
  const local = port === 0 || !/^\d{1,5}$/.test(text) ? 0 : Number(text);
  if (port + local <= LAST_PORT) return port + local;
  throw new OptionError({}, `${source} gives local rank ${local} the port ${port + local}: choose a lower port.`);
}
