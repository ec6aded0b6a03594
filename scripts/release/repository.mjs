import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes the address of the repository into the packages of a checkout: `repository`, `homepage` and `bugs` for npm, and
 * the URLs of the project for Python. `names`: the folders of the packages. Throws if `url` is not like
 * https://github.com/owner/name.
 */
export function nameRepository(checkout, names, url) {
  const plain = url.replace(/(\.git)?\/?$/, '');
  if (!/^https:\/\/[^/\s"]+(\/[\w.-]+){2,}$/.test(plain))
    throw new Error(
      `--repository is "${url}": pass the address of the repository, such as https://github.com/owner/name.`,
    );
  for (const name of names) {
    const file = path.join(checkout, 'packages', name, 'package.json');
    const described = {
      ...JSON.parse(readFileSync(file, 'utf8')),
      homepage: `${plain}#readme`,
      repository: { type: 'git', url: `git+${plain}.git`, directory: `packages/${name}` },
      bugs: { url: `${plain}/issues` },
    };
    writeFileSync(file, `${JSON.stringify(described, null, 2)}\n`);
  }
  const python = path.join(checkout, 'python/pyproject.toml');
  const urls = `[project.urls]\nRepository = "${plain}"\nIssues = "${plain}/issues"\n`;
  writeFileSync(python, `${readFileSync(python, 'utf8').trimEnd()}\n\n${urls}`);
}
