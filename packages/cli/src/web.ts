/** `shardtool/web`: datasets in a browser. Its bundle has no module of Node. */
export * from '@shardtool/reader/web';
