/** Facts for a report about the folders right below a source. */
import type { Naming } from '../../plan/naming.js';
import { OUTCOME } from '../../plan/outcomes.js';
import type { PackPlan } from '../../plan/plan-shards.js';
import type { FileReader, SourceFiles } from '../../source/source-files.js';

/** Folders that contain no packed image. They are not classes, although torchvision's ImageFolder numbers them. */
export function foldersWithoutImages(
  files: SourceFiles,
  { outcomes }: PackPlan,
  folders: readonly string[],
  naming: Naming,
): string[] {
  const reader = files.reader();
  return folders.filter((folder) => !naming.isPaired(folder) && !hasPacked(reader, outcomes, `${folder}/`));
}

function hasPacked(reader: FileReader, outcomes: Uint8Array, prefix: string): boolean {
  for (let file = reader.firstFrom(prefix); file < reader.count; file++) {
    if (outcomes[file] === OUTCOME.packed) return reader.path(file).startsWith(prefix);
    if (!reader.path(file).startsWith(prefix)) return false;
  }
  return false;
}
