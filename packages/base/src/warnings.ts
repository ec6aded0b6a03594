/** Receives the text of a warning. */
type WarningSink = (message: string) => void;

let sink: WarningSink | null = null;

/** Warns the user once. A warning of the process, unless {@link redirectWarnings} was called. `code` is Node's, to tell warnings apart. */
export function warn(code: string, message: string): void {
  if (sink !== null) sink(message);
  else process.emitWarning(message, { type: 'ShardtoolWarning', code });
}

/** Sends all warnings of this process elsewhere: the process that serves Python has no terminal of its own. */
export function redirectWarnings(to: WarningSink): void {
  sink = to;
}
