/**
 * What a table of options says of each: the checks, the flags of the command line and the pages of docs are made of such
 * tables. They are plain data, so that the command line lists its flags without loading what does the work.
 */

interface About {
  /** Description in one line. */
  readonly help: string;
  /** The default as the help shows it; null: none. Without this key, the help shows `default`. */
  readonly shown?: string | null;
  /** Heading under which help and docs list the option. */
  readonly group?: OptionGroup;
  /** Placeholder of the value in help: `PX` gives `--resize <PX>`. Default: by kind. */
  readonly placeholder?: string;
  /** Whether the short help (`-h`) lists the option. */
  readonly isCommon?: boolean;
}

/** Headings of options, in the order in which help and docs list them. */
export const OPTION_GROUPS = [
  'Input',
  'Samples',
  'Classes and labels',
  'Images',
  'Fields',
  'Batches',
  'Order and ranks',
  'Output',
  'Bad files',
  'Bad samples',
  'Resume and parts',
  'Measurement',
  'Performance',
  'Input format',
  'Storage',
  'General',
] as const;

export type OptionGroup = (typeof OPTION_GROUPS)[number];

/** Kinds of option values. */
export type OptionEntry = About &
  (
    | { readonly kind: 'switch'; readonly default?: boolean }
    | { readonly kind: 'choice'; readonly values: readonly string[]; readonly default?: string }
    | { readonly kind: 'choices'; readonly values: readonly string[]; readonly default: readonly string[] }
    /** A whole number. `bytes` may also be a text such as `64MiB`. `to` is included; `isEndless` allows Infinity too. */
    | {
        readonly kind: 'whole' | 'bytes';
        readonly from: number;
        readonly to?: number;
        readonly isEndless?: boolean;
        readonly default?: number;
      }
    /** More than 0, in a program also a part of one. `to` is included. */
    | { readonly kind: 'seconds'; readonly to: number; readonly default: number }
    /** From 0 to 1, also written as 1%. */
    | { readonly kind: 'share'; readonly default: number }
    | { readonly kind: 'text'; readonly pattern?: RegExp; readonly must?: string; readonly default?: string }
    /** On the command line separated by commas where `isJoined`. */
    | {
        readonly kind: 'texts';
        readonly pattern?: RegExp;
        readonly must?: string;
        readonly isJoined?: boolean;
        readonly default?: readonly string[];
      }
    /** Names of classes, and their numbers. */
    | { readonly kind: 'classes' }
    /** A text file with one of them a line, or, in a program, a list; `least` is how many there have to be. */
    | { readonly kind: 'list'; readonly least?: number }
    | { readonly kind: 'path' }
    /** A value that only programs can give. Its check is next to the table; here are its type in TypeScript, and a description. */
    | { readonly kind: 'own'; readonly type: string; readonly must: string }
  );

export type OptionTable = Readonly<Record<string, OptionEntry>>;

/** The value of an option in a program. */
export type OptionValue<Entry extends OptionEntry> = Entry extends { kind: 'switch' }
  ? boolean
  : Entry extends { kind: 'choice'; values: readonly (infer Value)[] }
    ? Value
    : Entry extends { kind: 'choices'; values: readonly (infer Value)[] }
      ? Value[]
      : Entry extends { kind: 'whole' | 'seconds' | 'share' }
        ? number
        : Entry extends { kind: 'bytes' }
          ? number | string
          : Entry extends { kind: 'texts' }
            ? string[]
            : Entry extends { kind: 'classes' }
              ? (string | number)[]
              : Entry extends { kind: 'list' }
                ? string | string[]
                : Entry extends { kind: 'own' }
                  ? unknown
                  : string;

/** Default values of options. */
export type OptionDefaults<Entries extends OptionTable> = {
  readonly [Name in keyof Entries as Entries[Name] extends { default: unknown } ? Name : never]: CheckedValue<
    Entries[Name]
  >;
};

/** The value of an option after checking: a size is a number of bytes. */
type CheckedValue<Entry extends OptionEntry> = Entry extends { kind: 'bytes' } ? number : OptionValue<Entry>;

/** Options that were checked: those without a default may be undefined. */
export type CheckedValues<Entries extends OptionTable> = OptionDefaults<Entries> & {
  readonly [Name in keyof Entries as Entries[Name] extends { default: unknown } ? never : Name]:
    | CheckedValue<Entries[Name]>
    | undefined;
};
