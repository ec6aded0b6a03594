/** The state of the page, which is stored in its address. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { hashOf, type PageState, stateOf } from './state.js';

export type Change = (part: Partial<PageState>, how?: 'push' | 'replace') => void;

/**
 * With `push`, the Back button returns to the state before this one. Otherwise the new state replaces the previous one.
 */
export function useStateLink(): [PageState, Change] {
  const [state, setState] = useState(() => stateOf(location.hash));
  const latest = useRef(state);
  /** The address that belongs to `latest`. */
  const known = useRef(location.hash);
  useEffect(() => {
    const follow = () => {
      known.current = location.hash;
      latest.current = stateOf(known.current);
      setState(latest.current);
    };
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  const change = useCallback<Change>((part, how = 'replace') => {
    // The user followed a link. The event for that comes in a moment.
    if (location.hash !== known.current) return;
    latest.current = { ...latest.current, ...part };
    setState(latest.current);
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', hashOf(latest.current));
    known.current = location.hash;
  }, []);
  return [state, change];
}
