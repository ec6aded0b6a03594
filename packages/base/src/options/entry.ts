/**
 * Descriptions of options in tables. Checks, flags of the command line and pages of the docs are generated from these
 * tables. They are plain data, so that the command line can list its flags without loading the code of the commands.
 */

interface About {
  /** Description in one line. */
  readonly help: string;
  /** Default as shown in help; null: none is shown. Without this property, help shows `default`. */
  readonly shown?: string | null;
  /** Heading under which help and docs list the option. */
  readonly group?: OptionGroup;
  /** Placeholder of the value in help: `PX` gives `--resize <PX>`. By default it depends on the kind. */
  readonly placeholder?: string;
  /** Values that users try although the option does not have them, with the reason and what to do instead. */
  readonly refused?: Readonly<Record<string, string>>;
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
    /** A number greater than 0, in programs also a fraction. `to` is included. */
    | { readonly kind: 'seconds'; readonly to: number; readonly default: number }
    /** A number from 0 to 1, also written as 1%. */
    | { readonly kind: 'share'; readonly default: number }
    | { readonly kind: 'text'; readonly pattern?: RegExp; readonly must?: string; readonly default?: string }
    /** On the command line, values are separated by commas if `isJoined` is set. */
    | {
        readonly kind: 'texts';
        readonly pattern?: RegExp;
        readonly must?: string;
        readonly isJoined?: boolean;
        readonly default?: readonly string[];
      }
    /** Class names or class numbers. */
    | { readonly kind: 'classes' }
    /** A text file with one value per line, or, in programs, a list. `least` is the minimum number of values. */
    | { readonly kind: 'list'; readonly least?: number }
    | { readonly kind: 'path' }
    /**
     * A value that only programs can pass. Its check is next to the table. These are its TypeScript type and a
     * description.
     */
    | { readonly kind: 'own'; readonly type: string; readonly must: string }
  );

export type OptionTable = Readonly<Record<string, OptionEntry>>;

/** The value of an option as a program passes it. */
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
