import { OptionError, warn } from '@shardtool/base';
import { type MetricsOptions, OTLP } from './address.js';

/** A collector to which metrics are sent, from the variables that all senders of OTLP read. */
export interface OtlpTarget {
  /** `http://collector:4318/v1/metrics`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Attributes of this process, such as `service.name`. */
  readonly resource: Readonly<Record<string, string>>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Defaults of the specification (https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and .../sdk-environment-variables/). */
const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_INTERVAL_MS = 60_000;

/**
 * Where to send metrics. Null unless metrics are requested, and `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector. Throws {@link
 * OptionError} if `otlp` is requested and the variables cannot be used. If only a port is requested, that is a warning.
 */
export function otlpTarget(
  option: MetricsOptions | typeof OTLP | false | undefined,
  environment: Environment,
): OtlpTarget | null {
  const requested = option ?? environment.SHARDTOOL_METRICS ?? '';
  const isOff = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || environment.OTEL_METRICS_EXPORTER === 'none';
  if (requested === false || requested === '' || isOff) return null;
  try {
    const target = targetOf(environment);
    if (target === null && requested === OTLP) {
      throw new OptionError(
        {},
        'Metrics are to be sent by OTLP, but OTEL_EXPORTER_OTLP_ENDPOINT is not set: set it to the address of a collector, such as "http://127.0.0.1:4318".',
      );
    }
    return target;
  } catch (error) {
    if (requested === OTLP || !(error instanceof OptionError)) throw error;
    warn('SHARDTOOL_METRICS_NOT_SENT', `${error.message} This process sends no metrics.`);
    return null;
  }
}

function targetOf(environment: Environment): OtlpTarget | null {
  const valueNamed = (name: string) => environment[name]?.trim() || null;
  /** The variable for metrics precedes the one for all signals. */
  const ofMetrics = (name: string): [string, string] | null => {
    for (const full of [`OTEL_EXPORTER_OTLP_METRICS_${name}`, `OTEL_EXPORTER_OTLP_${name}`]) {
      const value = valueNamed(full);
      if (value !== null) return [full, value];
    }
    return null;
  };
  const endpoint = ofMetrics('ENDPOINT');
  if (endpoint === null) return null;
  const protocol = ofMetrics('PROTOCOL');
  if (protocol !== null && !protocol[1].startsWith('http/')) {
    throw new OptionError(
      {},
      `${protocol[0]} is "${protocol[1]}", but metrics are sent as JSON over HTTP: set OTEL_EXPORTER_OTLP_METRICS_PROTOCOL to "http/json", and OTEL_EXPORTER_OTLP_METRICS_ENDPOINT to the collector's address for HTTP, usually port 4318.`,
    );
  }
  const milliseconds = (found: [string, string] | null, otherwise: number): number => {
    if (found === null) return otherwise;
    const value = Number(found[1]);
    // A timer of Node waits for at most 2^31 - 1 ms.
    if (Number.isInteger(value) && value > 0 && value < 2 ** 31) return value;
    throw new OptionError({}, `${found[0]} is "${found[1]}": set it to a number of milliseconds, or unset it.`);
  };
  const interval = valueNamed('OTEL_METRIC_EXPORT_INTERVAL');
  const headers = ofMetrics('HEADERS');
  const resource = valueNamed('OTEL_RESOURCE_ATTRIBUTES');
  const attributes = resource === null ? {} : pairsOf('OTEL_RESOURCE_ATTRIBUTES', resource);
  const service = valueNamed('OTEL_SERVICE_NAME');
  return {
    url: urlOf(endpoint),
    headers: headers === null ? {} : headersOf(...headers),
    timeoutMs: milliseconds(ofMetrics('TIMEOUT'), DEFAULT_TIMEOUT_MS),
    intervalMs: milliseconds(interval === null ? null : ['OTEL_METRIC_EXPORT_INTERVAL', interval], DEFAULT_INTERVAL_MS),
    resource: { 'service.name': 'shardtool', ...attributes, ...(service !== null && { 'service.name': service }) },
  };
}

/** The variable for metrics has the whole URL; the one for all signals the part before `/v1/metrics`. */
function urlOf([name, value]: [string, string]): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new OptionError(
      {},
      `${name} is not the address of a collector: set it to a URL such as "http://127.0.0.1:4318", and credentials to OTEL_EXPORTER_OTLP_HEADERS.`,
    );
  }
  if (name === 'OTEL_EXPORTER_OTLP_ENDPOINT') url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/metrics`;
  return url.href;
}

/** Headers by name. Those that HTTP cannot send are refused here, since errors of HTTP clients show their values. */
function headersOf(name: string, text: string): Record<string, string> {
  const headers = Object.entries(pairsOf(name, text)).map(([key, value]) => [key, value.trim()] as const);
  const isRight = headers.every(
    ([key, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(key) && /^[\t -~\x80-\xff]*$/.test(value),
  );
  if (isRight) return Object.fromEntries(headers);
  throw new OptionError(
    {},
    `${name} has a header with a character that HTTP does not allow, such as a line break: remove that character.`,
  );
}

/** `key=value,key=value`, with values encoded as in URLs. Messages do not show values, since they may be secret. */
function pairsOf(name: string, text: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [key, value] = [part.slice(0, part.indexOf('=')).trim(), part.slice(part.indexOf('=') + 1).trim()];
    try {
      if (!part.includes('=') || key === '') throw new URIError();
      pairs[key] = decodeURIComponent(value);
    } catch {
      throw new OptionError(
        {},
        `${name} cannot be read: set it to pairs such as "key=value,other=value", with special characters encoded as in URLs ("%20").`,
      );
    }
  }
  return pairs;
}
