import { expect, test } from 'vitest';
import { hubPlace } from './place.js';

test('a location of the hub has a repository, a revision and a folder', () => {
  const endpoint = 'https://huggingface.co';
  expect(hubPlace('hf://datasets/me/cats', {})).toEqual({ repo: 'me/cats', revision: 'main', prefix: '', endpoint });
  expect(hubPlace('hf://datasets/me/cats.v2@refs%2Fpr%2F1/train/a/', { HF_ENDPOINT: 'http://hub.test/' })).toEqual({
    repo: 'me/cats.v2',
    revision: 'refs/pr/1',
    prefix: 'train/a/',
    endpoint: 'http://hub.test',
  });
});

test('the error for an invalid location shows the valid form', () => {
  for (const wrong of ['hf://me/cats', 'hf://datasets/cats', 'hf://spaces/me/cats', 'hf://datasets/me/..@x/y z?q']) {
    if (wrong.includes('..')) expect(hubPlace(wrong, {}).repo).toBe('me/..');
    else expect(() => hubPlace(wrong, {})).toThrow(/Write hf:\/\/datasets\/user\/name/);
  }
  expect(() => hubPlace('hf://datasets/me/cats', { HF_ENDPOINT: 'hub.test' })).toThrow(/HF_ENDPOINT is invalid/);
});
