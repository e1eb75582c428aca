// The faults of a page: what is wider than the window, too small, too faint, cut off, not drawn.
(()=>{
const faults=[], root=document.documentElement;
if(root.scrollWidth>root.clientWidth) faults.push('wide: '+root.scrollWidth+' > '+root.clientWidth);
const numbers=c=>{
 const m=c.match(/[\d.]+/g)||[0,0,0,0];return [+m[0],+m[1],+m[2],m[3]===undefined?1:+m[3]]};
const lum=c=>{const f=c.slice(0,3).map(v=>{v/=255;return v<=.03928?v/12.92:((v+.055)/1.055)**2.4});
return .2126*f[0]+.7152*f[1]+.0722*f[2]};
const over=(a,b)=>[0,1,2].map(i=>a[i]*a[3]+b[i]*(1-a[3])).concat(1);
const ground=e=>{
 const seen=[];
 for(;e;e=e.parentElement){const c=numbers(getComputedStyle(e).backgroundColor);
if(c[3]>0) seen.push(c)}return seen.reverse().reduce((b,c)=>over(c,b),[255,255,255,1])};
const walker=document.createTreeWalker(document.body,NodeFilter.SHOW_TEXT);let count=0;
for(let n;n=walker.nextNode();){
 const words=n.textContent.trim(), e=n.parentElement;
 if(!words||!e||['SCRIPT','STYLE','TITLE'].includes(e.tagName)||e.closest('title')) continue;
 const box=e.getBoundingClientRect();if(!box.width||!box.height) continue;
 const s=getComputedStyle(e);if(s.visibility==='hidden'||+s.opacity===0) continue;
 count++;
 if(parseFloat(s.fontSize)<SMALLEST) faults.push('small: '+s.fontSize+' '+words.slice(0,40));
 const svg=e.namespaceURI.endsWith('svg');
 const ink=numbers(svg?s.fill:s.color), back=ground(svg?e.closest('svg').parentElement:e);
 const a=lum(over(ink,back)), b=lum(back), c=(Math.max(a,b)+.05)/(Math.min(a,b)+.05);
 if(c<CONTRAST) faults.push('faint: '+c.toFixed(2)+' '+words.slice(0,40));
}
document.querySelectorAll('.plot').forEach(p=>{
 if(p.closest('[hidden]')) return;
 if(!p.querySelector('.main-svg')) {faults.push('not drawn: '+p.id);return}
 const frame=p.getBoundingClientRect();
 p.querySelectorAll('text').forEach(t=>{const b=t.getBoundingClientRect();
  if(b.width&&(b.left<frame.left-2||b.right>frame.right+2||b.bottom>frame.bottom+2))
   faults.push('cut off in '+p.id+': '+t.textContent.slice(0,40))});
});
if(!count) faults.push('no text');
return [...new Set(faults)];
})()
