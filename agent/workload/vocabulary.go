package workload

import "strings"

// vocabulary is 256 common words, each one token of the cl100k_base and
// o200k_base vocabularies, with a blank before it or without: a text of n of them
// is n tokens long there, and about that elsewhere. Frozen: changing it changes
// what every seed draws.
var vocabulary = strings.Fields(`
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you
were her all she there would their we him been has when who will more no if out so said what up its about into than
them can only other new some could time these two may then do first any my now such like our over man me even most
made after also did many before must through back years where much your way well down should because each just those
people how too little state good very make world still own see men work long get here between both life being under
never day same another know while last might us great old year off come since against go came right used take three
house use during without again place around however home small found thought went say part once general high upon
school every keep until always away fact though water less public put think almost hand far head yet system better set
nothing night end why called eyes find going look later point next city program business give group young days let
room side social present given order national possible rather second face per among form often things early white case
large big need four within felt along children best church ever least power light thing family interest want members
mind country area others turned done open service problem kind thus
`)
