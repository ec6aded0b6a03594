/** The page of `view --static`: the dataset is at the URL in its address, or at one that the user enters. */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { openUrl } from './api.web.js';
import { App } from './app.js';
import { stateOf } from './link/state.js';

/** URL that was given when the page was written; '' for none. */
const GIVEN = document.querySelector<HTMLMetaElement>('meta[name="shardtool-dataset"]')?.content ?? '';

function urlNow(): string {
  return stateOf(location.hash).url ?? GIVEN;
}

function Start() {
  const [url, setUrl] = useState(urlNow);
  useEffect(() => {
    const follow = () => setUrl(urlNow());
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  return url === '' ? <Ask onUrl={setUrl} /> : <Opened key={url} url={url} />;
}

function Opened({ url }: { readonly url: string }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    openUrl(url);
    setOpen(true);
  }, [url]);
  return isOpen ? <App /> : null;
}

function Ask({ onUrl }: { readonly onUrl: (url: string) => void }) {
  const [text, setText] = useState('');
  return (
    <main class="opening">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === '') return;
          history.pushState(null, '', `#${new URLSearchParams({ url: text.trim() })}`);
          onUrl(text.trim());
        }}
      >
        <label for="url">URL of a dataset</label>{' '}
        <input
          id="url"
          type="text"
          size={50}
          placeholder="https://example.org/shards"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />{' '}
        <button type="submit">Open</button>
      </form>
    </main>
  );
}

render(<Start />, document.getElementById('app')!);
