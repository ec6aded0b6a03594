export function versionsIn(folder: string): string[];
export function writeVersions(folder: string): void;
