import { scanFolder } from './dist/scan.js'; import {planShards} from './dist/plan.js'; import fs from 'fs';
const t0=performance.now(); const r=()=>Math.round(process.memoryUsage.rss()/1e6)+'MB/max '+Math.round(process.resourceUsage().maxRSS/1e3);
console.log('start', t0|0, r());
const s=await scanFolder(process.argv[2],{include:['**'],exclude:[]}); const t1=performance.now(); console.log('scan',s.files.count,(t1-t0)|0,r());
const dir=process.argv[2]+'/';
let d=new TextDecoder();
import {pathAt} from './dist/file-table.js';
for(let i=0;i<s.files.count;i++) s.files.bytes[i]=fs.statSync(dir+pathAt(s.files,i)).size; const t2=performance.now(); console.log('stat',(t2-t1)|0,r());
const p=planShards(s.files,{fields:[],maxShardBytes:256*2**20,maxShardSamples:1e9,seed:0,shuffle:true,classes:null,labels:null}); console.log('plan',(performance.now()-t2)|0,r(),p.shards);
