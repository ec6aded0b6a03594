import { expect, test } from 'vitest';
import { type DatasetState, parseState, StateError, takeUpState } from './state.js';

const state: DatasetState = {
  version: 1,
  dataset: '0123456789abcdef',
  selection: '',
  seed: 42,
  epoch: 7,
  streams: 192,
  blockSamples: 32,
  unit: 'shard',
  shuffle: true,
  epochSamples: null,
  globalBatch: 256,
  lastBatch: 'drop',
  position: 1_271_000,
};
const here = { dataset: state.dataset, selection: '' };

test('a state is read back from JSON unchanged, and is small', () => {
  const saved = JSON.stringify(state);
  expect(takeUpState(JSON.parse(saved), here)).toEqual(state);
  expect(saved.length).toBeLessThan(300);
});

test('a state of another dataset is rejected', () => {
  expect(() => takeUpState(state, { ...here, dataset: 'f' })).toThrow(
    'belongs to another dataset (its identity is 0123456789abcdef',
  );
});

test('a state of another selection is rejected', () => {
  expect(() => takeUpState(state, { ...here, selection: 'abc' })).toThrow(
    'another selection (all samples, but this is abc)',
  );
});

test('a state of a newer version is rejected, whatever else it contains', () => {
  expect(() => takeUpState({ version: 3, future: true }, here)).toThrow(
    'version 3 of the order, but this shardtool knows versions up to 2',
  );
});

test('an option that contradicts the state is rejected; an option that agrees, or is omitted, is accepted', () => {
  expect(takeUpState(state, { ...here, seed: 42, streams: 192, shuffle: true, unit: 'shard' })).toEqual(state);
  expect(() => takeUpState(state, { ...here, seed: 43 })).toThrow('saved with seed 42, but seed is 43 now');
  expect(() => takeUpState(state, { ...here, epochSamples: 10 })).toThrow('saved with samplesPerEpoch unset');
  expect(() => takeUpState(state, { ...here, shuffle: false })).toThrow('saved with shuffle true');
});

test('the error for a value that is not a state says what is wrong', () => {
  for (const value of [undefined, null, 5, 'x', [], {}, { ...state, position: -1 }, { ...state, unit: 'byte' }]) {
    expect(() => parseState(value)).toThrow(StateError);
  }
  expect(() => parseState({ ...state, position: 1.5 })).toThrow(
    'not a state of a loader (position must be a whole number, and is 1.5)',
  );
});
