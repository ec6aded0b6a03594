/** The page's state, kept in its address. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { hashOf, type PageState, stateOf } from './state.js';

export type Change = (part: Partial<PageState>, how?: 'push' | 'replace') => void;

/** `push` makes a state that Back leads away from; others replace each other. */
export function useStateLink(): [PageState, Change] {
  const [state, setState] = useState(() => stateOf(location.hash));
  const latest = useRef(state);
  /** The address that `latest` is of. */
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
    // Somebody follows a link, which is heard of in a moment.
    if (location.hash !== known.current) return;
    latest.current = { ...latest.current, ...part };
    setState(latest.current);
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', hashOf(latest.current));
    known.current = location.hash;
  }, []);
  return [state, change];
}
