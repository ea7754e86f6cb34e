package schema
import ("testing";"time";"fmt";"strings";"encoding/json")
func TestTmp(t *testing.T){
	m:=map[string]string{}
	var b strings.Builder
	// 1 wide properties
	b.WriteString(`{"type":"object","properties":{`)
	for i:=range 2900 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"type":"string","minLength":1}`,i)}
	b.WriteString(`}}`); m["wide"]=b.String(); b.Reset()
	// 2 odd refs
	b.WriteString(`{"type":"object","x":{`)
	for i:=range 1400 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"type":"string"}`,i)}
	b.WriteString(`},"properties":{`)
	for i:=range 1400 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"$ref":"#/x/p%d"}`,i,i)}
	b.WriteString(`}}`); m["oddrefs"]=b.String(); b.Reset()
	// 3 ids
	b.WriteString(`{"type":"object","$defs":{`)
	for i:=range 2900 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"$id":"http://a/%d"}`,i,i)}
	b.WriteString(`}}`); m["ids"]=b.String(); b.Reset()
	// 4 required wide
	b.WriteString(`{"type":"object","required":[`)
	for i:=range 900 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d"`,i)}
	b.WriteString(`],"properties":{`)
	for i:=range 900 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"type":"array","items":{"type":"integer","minimum":1}}`,i)}
	b.WriteString(`}}`); m["wide900required"]=b.String(); m["wide150required"]=strings.NewReplacer().Replace(wide(300)); b.Reset()
	// regexes
	m["regexbig"]=field(`{"type":"string","pattern":"^(x{1,900}y?){1,1}z","maxLength":900000}`)
	m["regexnest"]=field(`{"type":"string","pattern":"((((a*)*)*)*)*b{0,900}c"}`)
	b.WriteString(`{"type":"object","properties":{`)
	for i:=range 300 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"p%d":{"type":"string","pattern":"(a|b|c){0,%d}[xyz]+$"}`,i,500+i)}
	b.WriteString(`}}`); m["manyregex"]=b.String(); b.Reset()
	b.WriteString(`{"type":"object","patternProperties":{`)
	for i:=range 1000 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"(a|b|c){0,%d}[xyz]+$":{}`,i)}
	b.WriteString(`},"properties":{"a":{},"b":{},"c":{}}}`); m["patternprops"]=b.String(); b.Reset()
	// enum
	b.WriteString(`{"type":"object","properties":{"a":{"enum":[`)
	for i:=range 60000 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`"v%d"`,i)}
	b.WriteString(`]}},"required":["a"]}`); m["enum"]=b.String(); b.Reset()
	// oneOf tagged
	b.WriteString(`{"type":"object","oneOf":[`)
	for i:=range 500 { if i>0 {b.WriteString(",")}; fmt.Fprintf(&b,`{"properties":{"kind":{"const":"k%d"},"v":{"type":"string"}},"required":["kind","v"]}`,i)}
	b.WriteString(`]}`); m["oneof500"]=b.String(); b.Reset()
	// anyOf product
	ch:=`{"anyOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]}`
	m["product"]=`{"type":"object","allOf":[`+strings.Repeat(ch+",",200)+ch+`],"not":{"minProperties":1}}`
	// multi recursion
	m["ast"]=`{"$ref":"#/$defs/e","$defs":{"e":{"type":"object","required":["l","r","k","m"],"properties":{"l":{"type":"array","items":{"$ref":"#/$defs/e"}},"r":{"type":"array","items":{"$ref":"#/$defs/f"}},"k":{"type":"array","items":{"$ref":"#/$defs/g"}},"m":{"type":"array","items":{"$ref":"#/$defs/h"}}}},"f":{"allOf":[{"$ref":"#/$defs/e"}]},"g":{"allOf":[{"$ref":"#/$defs/f"}]},"h":{"allOf":[{"$ref":"#/$defs/g"}]}}}`
	m["longkeys"]=`{"type":"object","properties":{"`+strings.Repeat("k",500000)+`":{"type":"string"}}}`
	m["manyx"]=`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","minLength":60000},"minItems":200}},"required":["a"]}`
	m["deepallof"]=nested(190,`{}`)
	m["number"]=field(`{"type":"number","minimum":1e399,"multipleOf":1e-399}`)
	m["number2"]=field(`{"type":"number","minimum":-1e-399,"maximum":1e-399}`)
	for k,raw:=range m{
		st:=time.Now()
		s,err:=Compile(json.RawMessage(raw))
		d0:=time.Since(st)
		if err!=nil{fmt.Println(k,len(raw),d0,err);continue}
		st=time.Now()
		args,_,err:=Synthesize(s)
		d1:=time.Since(st)
		if err!=nil{fmt.Println(k,len(raw),d0,d1,err);continue}
		st=time.Now()
		set,err:=Cases(s,args,Options{})
		fmt.Println(k,len(raw),d0,d1,time.Since(st),len(set.Cases),set.LeftOut,set.Undecided,set.CutShort,err,s.Limits()[:min(1,len(s.Limits()))])
	}
}
