import { OptionError } from '@shardtool/base';

/** A folder in a repository of datasets on the Hugging Face Hub. */
export interface HubPlace {
  /** `user/name`. */
  readonly repo: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** '' or ends with a slash. */
  readonly prefix: string;
  /** Without a slash at its end. */
  readonly endpoint: string;
}

const HUB = 'https://huggingface.co';
const LOCATION = /^hf:\/\/datasets\/([\w.-]+\/[\w.-]+?)(?:@([^/]+))?(?:\/(.*))?$/i;

/**
 * Reads `hf://datasets/USER/NAME[@REVISION][/PATH]`, as the hub's own library writes it; a slash in a revision is `%2F`. Throws
 * {@link OptionError}.
 */
export function hubPlace(location: string, env: NodeJS.ProcessEnv): HubPlace {
  const [, repo, revision = 'main', path = ''] = LOCATION.exec(location) ?? [];
  if (repo === undefined) {
    throw new OptionError(
      { path: location },
      `${location} is not a dataset of the Hub. Write hf://datasets/user/name, or hf://datasets/user/name@revision.`,
    );
  }
  const endpoint = env.HF_ENDPOINT || HUB;
  if (!/^https?:\/\/[^/]/.test(endpoint)) {
    throw new OptionError({}, 'HF_ENDPOINT is invalid: it must be a URL that begins with https:// or http://.');
  }
  const prefix = path.replace(/\/+$/, '');
  return {
    repo,
    revision: decodeURIComponent(revision),
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint: endpoint.replace(/\/+$/, ''),
  };
}
