export declare function madeFiles(): Readonly<Record<string, string>>;
