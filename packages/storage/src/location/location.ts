import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OptionError } from '@shardtool/base';
import { countBraces } from './braces.js';

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

/** Returns the scheme in lower case: `s3` for `s3://bucket/name`, and `file` for a path. */
export function schemeOf(location: string): string {
  const scheme = SCHEME.exec(location)?.[1]?.toLowerCase();
  return scheme ?? 'file';
}

/** Returns true if the location is not a path on this machine. */
export function isRemote(location: string): boolean {
  return schemeOf(location) !== 'file';
}

/** Returns true if a location can be listed. Plain HTTP has no lists. */
export function canBeListed(location: string): boolean {
  return !/^https?:/i.test(location);
}

/** Returns the path of a location on this machine, which may be a `file:` URL; null for a remote location. */
export function localPathOf(location: string): string | null {
  if (isRemote(location)) return null;
  return SCHEME.test(location) || location.startsWith('file:/') ? fileURLToPath(location) : location;
}

/** Splits off the query of an HTTP location, such as a token. It is added to every name below the location. */
function splitQuery(location: string): { path: string; query: string } {
  const at = /^https?:/i.test(location) ? location.search(/[?#]/) : -1;
  return at < 0 ? { path: location, query: '' } : { path: location.slice(0, at), query: location.slice(at) };
}

/** Returns the location of a name below a folder. */
export function joinLocation(folder: string, name: string): string {
  if (!isRemote(folder)) return path.join(folder, name);
  const { before, after } = aroundNames(folder);
  return `${before}${name}${after}`;
}

/** {@link joinLocation} for many names, such as those of a manifest. No part of a name may be empty, `.` or `..`. */
export function joinLocations(folder: string, names: readonly string[]): string[] {
  const { before, after } = aroundNames(folder);
  return names.map((name) => `${before}${name}${after}`);
}

function aroundNames(folder: string): { before: string; after: string } {
  if (!isRemote(folder)) return { before: path.join(folder, 'name').slice(0, -'name'.length), after: '' };
  const { path: place, query } = splitQuery(folder);
  return { before: place.endsWith('/') ? place : `${place}/`, after: query };
}

/** Returns the folder of a location, and its name in that folder. */
export function splitLocation(location: string): { folder: string; name: string } {
  if (!isRemote(location)) return { folder: path.dirname(location), name: path.basename(location) };
  const { path: place, query } = splitQuery(location);
  const root = SCHEME.exec(place)![0];
  const rest = place.slice(root.length).replace(/\/+$/, '');
  const slash = rest.lastIndexOf('/');
  if (slash < 0) return { folder: `${root}${rest}${query}`, name: '' };
  return { folder: `${root}${rest.slice(0, slash)}${query}`, name: rest.slice(slash + 1) };
}

/** Returns a location for messages: without its query, which may be a signature, and without a user and password. */
export function shownLocation(location: string): string {
  if (!isRemote(location)) return location;
  return splitQuery(location).path.replace(/^([a-z0-9+.-]+:\/\/)[^/@]*@/i, '$1');
}

/** Maximum number of shards that braces may stand for. More are probably a typing error. */
const MOST_LOCATIONS = 1_000_000;

/**
 * Expands braces such as `{000..146}` in a location, and keeps the number of digits. Without braces it returns the location itself.
 * Throws {@link OptionError} if they stand for more than a million locations.
 */
export function expandBraces(location: string): string[] {
  const count = countBraces(location);
  if (count > MOST_LOCATIONS) {
    const shown = shownLocation(location);
    throw new OptionError(
      {},
      `The braces of ${shown} expand to ${count} shards, more than ${MOST_LOCATIONS}; give the folder of the shards instead.`,
    );
  }
  return expanded(location);
}

function expanded(location: string): string[] {
  const match = /\{([^{}]*)\}/.exec(location);
  if (match === null) return [location];
  const [whole, inner] = match as unknown as [string, string];
  const head = location.slice(0, match.index);
  const tail = location.slice(match.index + whole.length);
  const range = /^(\d+)\.\.(\d+)$/.exec(inner);
  const choices = range === null ? inner.split(',') : numbers(range[1]!, range[2]!);
  if (range === null && choices.length < 2) return [location];
  return choices.flatMap((choice) => expanded(`${head}${choice}${tail}`));
}

function numbers(from: string, to: string): string[] {
  const digits = from.startsWith('0') ? from.length : 1;
  const step = Number(to) < Number(from) ? -1 : 1;
  const count = Math.abs(Number(to) - Number(from)) + 1;
  return Array.from({ length: count }, (_, i) => String(Number(from) + i * step).padStart(digits, '0'));
}
