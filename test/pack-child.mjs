// Packs in a separate process, which a test may kill: `node pack-child.mjs SOURCE OUTPUT OPTIONS`. Prints the report, or
// the error as `NAME: MESSAGE`.
import { pack } from '@shardtool/writer';

const [source, output, options] = process.argv.slice(2);
try {
  console.log(JSON.stringify(await pack(source, output, JSON.parse(options))));
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
