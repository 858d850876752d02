# a template
class {{ name }}(nn.Module):
    def forward(self, x):
        return F.silu(self.gate(x)) * self.up(x)
