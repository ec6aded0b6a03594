/**
 * A reader in a separate process. Prints a line of JSON per batch. With `stateFile`, saves the state after each batch, by rename.
 * Argument: JSON of { location, options, stateFile, run, batches }. `run` is saved with the state.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { openDataset } from '@shardtool/reader';

const { location, options, stateFile, run, batches = Infinity } = JSON.parse(process.argv[2]);
if (options.epochsPerLoop === null) options.epochsPerLoop = Infinity;
const dataset = await openDataset(location);
const loader = dataset.loader(options);
let delivered = 0;
for await (const { epoch, keys, valid } of loader) {
  process.stdout.write(`${JSON.stringify({ epoch, keys, valid: [...valid] })}\n`);
  delivered++;
  if (stateFile !== undefined) {
    writeFileSync(`${stateFile}.new`, JSON.stringify({ state: loader.state(), delivered, run }));
    renameSync(`${stateFile}.new`, stateFile);
  }
  if (delivered === batches) break;
}
await dataset.close();
