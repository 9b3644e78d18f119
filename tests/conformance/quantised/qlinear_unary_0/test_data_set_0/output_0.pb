J´7Ae,$IAD%lmpPsR^Nin&)s(k:qh_ Yk
"'*s]c.rt	!ASh%D>o<l	p*q
IC:	J>+k&.qbiBHLqjnK?s0Hgg[7:^		<e6t6nHP%h
V>qfjns
%	
/gskm\>fPmhnqFhlcmirF$&_]%7g#9BL.Q_.$nai]qm1q^c.)Sqq*fYLocT[ql3plI.q!tmrDpe]srlr Xnf:_F%n(;rm8ln3iYal(B\Ua^!sa<[
